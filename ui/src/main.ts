import { mount } from "svelte";
import App from "./App.svelte";
import "./app.css";
import { chooseBackend } from "./lib/backend";

const target = document.getElementById("app");
if (target) mount(App, { target, props: { backend: await chooseBackend() } });
