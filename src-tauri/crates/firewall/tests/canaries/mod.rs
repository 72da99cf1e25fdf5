//! Planted secrets: every vessel that can hold one, in every encoding, on every carrier.
//!
//! It depends on nothing but `serde_json`, so that any test that sees bytes leave can plant the same ones.

#![allow(dead_code, reason = "each test takes what it needs")]

use serde_json::{Value, json};

/// A secret inside something that a page, a browser or a server could say.
#[derive(Clone, Debug)]
pub struct Canary {
    /// What it is, for a failing test to say.
    pub name: String,
    /// What must not leave.
    pub secret: String,
    /// What holds it.
    pub text: String,
    /// Whether the text is one address as a whole, as a tab's is.
    pub is_address: bool,
}

impl Canary {
    /// The pieces of the secret that must not leave either: what is left of a secret is still worth guessing from.
    pub fn pieces(&self) -> impl Iterator<Item = &str> {
        (0..=self.secret.len() - PIECE).map(|start| &self.secret[start..start + PIECE])
    }

    /// The piece of the secret that stands in `output` in the plain or in a decodable form.
    pub fn leak_in(&self, output: &str) -> Option<&str> {
        let mut layers = vec![output.to_owned()];
        for _ in 0..8 {
            let next = without_escapes(&layers[layers.len() - 1]);
            if layers.contains(&next) {
                break;
            }
            layers.push(next);
        }
        self.pieces().find(|piece| layers.iter().any(|layer| layer.contains(piece)))
    }
}

/// Shorter pieces than this would be found by chance.
const PIECE: usize = 8;

/// All canaries. Each has a secret of its own that follows from `seed`.
pub fn all(seed: u64) -> Vec<Canary> {
    let mut random = Random(seed);
    let mut canaries = Vec::new();
    for (vessel, is_address, build) in VESSELS {
        for (encoding, encode) in ENCODINGS {
            let secret = random.letters(32);
            let text = encode(&build(&secret));
            canaries.push(Canary { name: format!("{vessel}, {encoding}"), secret, text, is_address: *is_address });
        }
    }
    canaries
}

/// The messages that carry a canary out: what each is, and the JSON.
pub fn carriers(canary: &Canary) -> Vec<(&'static str, String)> {
    let text = &canary.text;
    let field = if canary.is_address { "url" } else { "title" };
    let tabs =
        json!({ "tabs": [{ "id": "tab_1a2b", field: "clean" }, { "id": "tab_3c4d", field: text, "active": true }] });
    let answer = |result: Value| json!({ "jsonrpc": "2.0", "id": 1, "result": result });
    let content = |text: String| json!({ "content": [{ "type": "text", "text": text }], "isError": false });
    let mut both = content(tabs.to_string());
    both["structuredContent"] = tabs.clone();
    let error =
        json!({ "code": -32602, "message": format!("The url {text} is not valid."), "data": { "argument": text } });
    let progress = json!({ "progressToken": 1, "message": text });
    let mut carriers = vec![
        ("structured result", answer(json!({ "structuredContent": tabs })).to_string()),
        ("result as text", answer(content(tabs.to_string())).to_string()),
        ("both results", answer(both).to_string()),
        ("JSON in JSON in text", answer(content(json!({ "page": tabs.to_string() }).to_string())).to_string()),
        ("UI event", json!({ "kind": "tab_changed", "tab": { field: text } }).to_string()),
    ];
    // Quoted in a sentence, an address ends at the first space; it has none.
    carriers.push(("error", json!({ "jsonrpc": "2.0", "id": 1, "error": error }).to_string()));
    carriers.push(("progress", json!({ "method": "notifications/progress", "params": progress }).to_string()));
    carriers.push(("plain result", answer(content(format!("Opened {text}"))).to_string()));
    let escaped: Vec<(&'static str, String)> =
        carriers.iter().map(|(_, json)| ("escaped JSON", escape_all(json))).collect();
    carriers.extend(escaped);
    carriers
}

type Build = fn(&str) -> String;

/// What holds a secret: its name, whether it is one address as a whole, and how it is built.
const VESSELS: &[(&str, bool, Build)] = &[
    ("query parameter", true, |secret| format!("https://app.example/cb?access_token={secret}&page=2")),
    ("fragment parameter", true, |secret| format!("https://app.example/cb#access_token={secret}&expires_in=3600")),
    ("hash route", true, |secret| format!("https://app.example/#/route?id_token={secret}&tab=1")),
    ("matrix parameter", true, |secret| format!("https://app.example/a;jsessionid={secret}/b?page=2")),
    ("semicolon parameter", true, |secret| format!("https://app.example/?page=2;api_key={secret}")),
    ("upper case name", true, |secret| format!("https://app.example/?ACCESS-TOKEN={secret}")),
    ("name in brackets", true, |secret| format!("https://app.example/?user[password]={secret}")),
    ("signature", true, |secret| format!("https://bucket.example/o?X-Amz-Expires=60&X-Amz-Signature={secret}")),
    ("random key", true, |secret| format!("https://api.example/v1?key=a1{secret}2b3&v=1")),
    ("sign-in code", true, |secret| format!("https://app.example/oauth/callback?code={secret}&state=1")),
    ("password", true, |secret| format!("https://ann:{secret}@app.example/")),
    ("user name", true, |secret| format!("https://{secret}@app.example/")),
    ("nested address", true, |secret| {
        format!("https://a.example/?next={}", percent(&format!("https://b.example/?token={secret}&x=1")))
    }),
    ("view-source", true, |secret| format!("view-source:https://app.example/?access_token={secret}")),
    ("data address", true, |secret| format!("data:text/html,<a%20href='https://app.example/?access_token={secret}'>")),
    ("title without scheme", false, |secret| format!("app.example/cb?access_token={secret}&page=2")),
    ("address in prose", false, |secret| format!("See (https://app.example/cb?access_token={secret}), then go on.")),
    ("setting in prose", false, |secret| format!("refused: client_secret={secret}")),
    ("JSON in prose", false, |secret| format!("upstream said {{\"access_token\": \"{secret}\", \"n\": 1")),
    ("JSON as text", false, |secret| json!({ "access_token": secret, "token_type": "bearer" }).to_string()),
    ("JWT in a path", true, |secret| format!("https://app.example/magic/{}/go", jwt(secret))),
    ("JWT in prose", false, |secret| format!("the token {} has expired", jwt(secret))),
    ("GitHub token", false, |secret| format!("remote: {}{}{secret}00000000 was refused", "gh", "p_")),
    ("bearer", false, |secret| format!("Authorization: Bearer {secret}")),
    ("private key", false, |secret| {
        format!("-----BEGIN {} KEY-----\n{secret}\n-----END {} KEY-----", "PRIVATE", "PRIVATE")
    }),
];

/// How the vessel is written.
const ENCODINGS: &[(&str, Build)] = &[
    ("plain", |text| text.to_owned()),
    ("name percent-encoded", |text| {
        text.replace("token", "%74o%6Ben").replace("key=", "k%65y=").replace("code=", "%63ode=")
    }),
    ("underscore percent-encoded", |text| text.replace('_', "%5F").replace('-', "%2D")),
    ("name percent-encoded twice", |text| text.replace("token", "%2574oken").replace("pass", "%2570ass")),
    ("separators percent-encoded", |text| {
        text.replace('=', "%3D").replace('&', "%26").replace('?', "%3F").replace('@', "%40")
    }),
    ("all percent-encoded", percent),
    ("all percent-encoded three times", |text| percent(&percent(&percent(text)))),
    ("ampersands as HTML", |text| text.replace('&', "&amp;")),
];

fn jwt(secret: &str) -> String {
    let (middle, head) = (secret.len() / 2, "ey");
    format!("{head}Jhead0000000.{head}J{}.{}", &secret[..middle], &secret[middle..])
}

/// Everything but letters and digits percent-encoded.
fn percent(text: &str) -> String {
    let encode =
        |byte: u8| if byte.is_ascii_alphanumeric() { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(encode).collect()
}

/// The same JSON with the letters and slashes inside its strings escaped.
fn escape_all(json: &str) -> String {
    json.replace("token", "\\u0074oken").replace('/', "\\/").replace('=', "\\u003d").replace('@', "\\u0040")
}

/// One layer of percent-encoding and of JSON's escapes taken off.
fn without_escapes(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(sign) = rest.chars().next() {
        let digits = match sign {
            '%' => rest.get(1..3).map(|digits| (digits, 3)),
            '\\' if rest[1..].starts_with('u') => rest.get(2..6).map(|digits| (digits, 6)),
            _ => None,
        };
        let code = digits.and_then(|(digits, length)| Some((u32::from_str_radix(digits, 16).ok()?, length)));
        match code.and_then(|(code, length)| Some((char::from_u32(code)?, length))) {
            Some((decoded, length)) => {
                out.push(decoded);
                rest = &rest[length..];
            }
            None => {
                out.push(sign);
                rest = &rest[sign.len_utf8()..];
            }
        }
    }
    out
}

/// Letters and digits that follow from a seed.
struct Random(u64);

impl Random {
    fn letters(&mut self, length: usize) -> String {
        let letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
        let mut letter = || {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            char::from(letters[usize::try_from((self.0 >> 33) % 62).unwrap_or_default()])
        };
        (0..length).map(|_| letter()).collect()
    }
}
