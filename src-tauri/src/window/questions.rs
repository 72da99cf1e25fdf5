//! Questions to the person, in native dialogs: one at a time, and the safe answer is the default.

use tabwarden_domain::one_line;
use tabwarden_gateway::{Answer, Asked, Question};
use tauri::AppHandle;
use tauri_plugin_dialog::{DialogExt, MessageDialogButtons, MessageDialogKind, MessageDialogResult};
use tokio::sync::oneshot;

use crate::app;

/// The longest title in a question, in characters.
const MAX_TITLE: usize = 80;

const KEEP: &str = "Keep it open";
const CLOSE_TAB: &str = "Close the tab, keep the browser";
const QUIT: &str = "Close and quit the browser";
const CLOSE: &str = "Close the tab";

/// Puts the agents' questions to the person, one after the other.
pub async fn answer(app: AppHandle, mut asked: Asked) {
    while let Some(question) = asked.next().await {
        let text = text(&question);
        // The safe answer comes first: a new dialog's focus is on its first button.
        let buttons = MessageDialogButtons::YesNoCancelCustom(KEEP.to_owned(), CLOSE_TAB.to_owned(), QUIT.to_owned());
        let answer = match show(&app, &text, buttons).await {
            Some(MessageDialogResult::Custom(button)) if button == CLOSE_TAB => Answer::CloseTab,
            Some(MessageDialogResult::Custom(button)) if button == QUIT => Answer::Quit,
            Some(MessageDialogResult::No) => Answer::CloseTab,
            Some(MessageDialogResult::Cancel) => Answer::Keep,
            _ => Answer::Keep,
        };
        question.answer(answer);
    }
}

/// Asks the person whether to close the last tab of the last window.
pub async fn person_closes_last_window(app: &AppHandle) -> bool {
    let buttons = MessageDialogButtons::OkCancelCustom(KEEP.to_owned(), CLOSE.to_owned());
    let text = "This is the last tab of the last browser window.";
    matches!(show(app, text, buttons).await, Some(MessageDialogResult::Custom(button)) if button == CLOSE)
}

fn text(question: &Question) -> String {
    let title = one_line(question.title(), MAX_TITLE);
    format!("{} wants to close the last browser window ({title}).", question.label())
}

async fn show(handle: &AppHandle, text: &str, buttons: MessageDialogButtons) -> Option<MessageDialogResult> {
    app::raise(handle);
    let (sender, receiver) = oneshot::channel();
    let mut dialog = handle.dialog().message(text).title("Tabwarden").kind(MessageDialogKind::Warning).buttons(buttons);
    if let Some(parent) = tauri::Manager::get_webview_window(handle, "main") {
        dialog = dialog.parent(&parent);
    }
    dialog.show_with_result(move |result| {
        let _ = sender.send(result);
    });
    receiver.await.ok()
}
