"""Presses a button of a native dialog, as assistive technology does: press_button.py NAME

Waits until a push button of that name is showing, presses it and prints the dialog's text.
"""

import sys
import time

import pyatspi

PATIENCE = 30


def walk(node, depth=0):
    if node is None or depth > 12:
        return
    yield node
    for index in range(node.childCount):
        yield from walk(node.getChildAtIndex(index), depth + 1)


def showing(node):
    return node.getState().contains(pyatspi.STATE_SHOWING)


def find(name):
    desktop = pyatspi.Registry.getDesktop(0)
    for app in desktop:
        # The browser's own dialogs are not ours to press.
        if app is None or "tabwarden" not in (app.name or "").lower():
            continue
        for window in app:
            try:
                nodes = list(walk(window))
                buttons = [n for n in nodes if n.getRole() == pyatspi.ROLE_PUSH_BUTTON and n.name == name and showing(n)]
            except Exception:  # A window that closes while it is read.
                continue
            if buttons:
                texts = [n.name for n in nodes if n.getRole() == pyatspi.ROLE_LABEL and n.name]
                return buttons[0], " ".join(texts)
    return None


def main():
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        found = find(sys.argv[1])
        if found:
            button, text = found
            print(text, flush=True)
            button.queryAction().doAction(0)
            return 0
        time.sleep(0.02)
    print(f"no button '{sys.argv[1]}' appeared", file=sys.stderr)
    return 1


sys.exit(main())
