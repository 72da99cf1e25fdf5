//! What a parameter's or a field's name says about its value.

/// How much a name says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Weight {
    /// Its value is a secret wherever it stands.
    Secret,
    /// Its value is a secret in an address.
    InAddress,
    /// Its value is a secret in an address if it looks random: `key=piano` is none.
    Suspicious,
    /// Its value is a secret in an address that takes part in a sign-in: `state=CA` is none.
    SignIn,
}

/// Longer names are judged by their end.
const JUDGED: usize = 48;

/// Cursors of pages and of machines: they give no access to anything.
const HARMLESS_TOKENS: [&str; 16] = [
    "progresstoken",
    "pagetoken",
    "nexttoken",
    "previoustoken",
    "prevtoken",
    "continuationtoken",
    "synctoken",
    "canceltoken",
    "cancellationtoken",
    "starttoken",
    "endtoken",
    "eostoken",
    "bostoken",
    "padtoken",
    "masktoken",
    "pertoken",
];

/// Names ending so hold keys that open something. A bare `key` is in none of them: `monkey`, `primary_key`.
const SECRET_KEYS: [&str; 18] = [
    "apikey",
    "accesskey",
    "secretkey",
    "privatekey",
    "signingkey",
    "encryptionkey",
    "authkey",
    "sharedkey",
    "masterkey",
    "accountkey",
    "subscriptionkey",
    "functionkey",
    "servicekey",
    "sessionkey",
    "storagekey",
    "licensekey",
    "consumerkey",
    "appkey",
];

/// What may follow a secret's name without making it another thing: `password_confirm`, `tokenValue`.
const TAILS: [&str; 7] = ["confirmation", "confirm", "again", "repeat", "value", "hash", "plain"];

/// Weighs a name, as far as it says anything. Case and `_ - . [ ]` make no difference.
pub(crate) fn weigh(name: &[u8]) -> Option<Weight> {
    let mut flat = [0; JUDGED];
    let flat = flatten(name, &mut flat);
    let flat = flat.trim_ascii_digits_end();
    let weight = weigh_flat(flat);
    if weight.is_some() {
        return weight;
    }
    let stem = TAILS.iter().find_map(|tail| flat.strip_suffix(tail.as_bytes()))?;
    weigh_flat(stem).filter(|&weight| weight == Weight::Secret)
}

/// Whether a field's name makes its text a secret.
pub(crate) fn is_secret_field(name: &str) -> bool {
    weigh(name.as_bytes()) == Some(Weight::Secret)
}

/// Whether a field's text is one address as a whole.
pub(crate) fn is_address_field(name: &str) -> bool {
    let mut flat = [0; JUDGED];
    let flat = flatten(name.as_bytes(), &mut flat);
    ends(flat, &["url", "uri", "href", "urls", "uris", "favicon"])
        || matches!(flat, b"src" | b"link" | b"location" | b"referrer" | b"referer" | b"origin")
}

/// Whether a field's text is a title.
pub(crate) fn is_title_field(name: &str) -> bool {
    let mut flat = [0; JUDGED];
    ends(flatten(name.as_bytes(), &mut flat), &["title"])
}

trait TrimDigits {
    fn trim_ascii_digits_end(&self) -> &[u8];
}

impl TrimDigits for [u8] {
    fn trim_ascii_digits_end(&self) -> &[u8] {
        let end = self.iter().rposition(|byte| !byte.is_ascii_digit()).map_or(0, |last| last + 1);
        &self[..end]
    }
}

/// The end of a name in lower case, letters and digits only.
fn flatten<'a>(name: &[u8], room: &'a mut [u8; JUDGED]) -> &'a [u8] {
    let mut start = JUDGED;
    for byte in name.iter().rev().filter(|byte| byte.is_ascii_alphanumeric()) {
        if start == 0 {
            break;
        }
        start -= 1;
        room[start] = byte.to_ascii_lowercase();
    }
    &room[start..]
}

fn ends(flat: &[u8], endings: &[&str]) -> bool {
    endings.iter().any(|ending| flat.ends_with(ending.as_bytes()))
}

/// Sorted by the last letter, so that most names are done with after one look.
fn weigh_flat(flat: &[u8]) -> Option<Weight> {
    use Weight::{InAddress, Secret, SignIn, Suspicious};
    match flat.last()? {
        b'n' if ends(flat, &["token"]) => (!ends(flat, &HARMLESS_TOKENS)).then_some(Secret),
        b'n' if ends(flat, &["authorization"]) => Some(Secret),
        b'n' if ends(flat, &["assertion"]) => Some(InAddress),
        b't' if ends(flat, &["secret", "jwt"]) => Some(Secret),
        b't' if flat == b"ticket" => Some(Suspicious),
        b't' if flat == b"samlart" => Some(InAddress),
        b'd' if ends(flat, &["password", "passwd", "pwd"]) => Some(Secret),
        b'd' if ends(flat, &["jsessionid", "phpsessid"]) => Some(InAddress),
        b'd' if flat == b"sid" || ends(flat, &["sessionid"]) => Some(Suspicious),
        b'y' if ends(flat, &SECRET_KEYS) => Some(Secret),
        b'y' if flat == b"key" => Some(Suspicious),
        b'e' if ends(flat, &["passphrase", "passcode"]) => Some(Secret),
        b'e' if ends(flat, &["signature", "samlresponse", "authcode", "authorizationcode", "oobcode", "otpcode"])
            || ends(flat, &["mfacode", "verificationcode", "logincode", "magiccode"]) =>
        {
            Some(InAddress)
        }
        b'e' if matches!(flat, b"code" | b"state" | b"nonce") => Some(SignIn),
        b'l' if ends(flat, &["credential"]) => Some(InAddress),
        b's' if ends(flat, &["credentials"]) => Some(InAddress),
        b's' if flat == b"pass" => Some(Suspicious),
        b'g' if flat == b"sig" => Some(Suspicious),
        b'c' if ends(flat, &["hmac"]) => Some(InAddress),
        b'h' if flat == b"auth" => Some(Suspicious),
        b'p' if matches!(flat, b"otp" | b"totp") => Some(InAddress),
        b'r' if flat == b"bearer" => Some(Secret),
        b'r' if ends(flat, &["codeverifier", "oauthverifier"]) => Some(Secret),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(names: &[&str], expect: Option<Weight>) {
        for name in names {
            assert_eq!(weigh(name.as_bytes()), expect, "{name}");
        }
    }

    #[test]
    fn secrets() {
        check(
            &[
                "access_token",
                "Access-Token",
                "ACCESSTOKEN",
                "accessToken",
                "id_token",
                "x-amz-security-token",
                "token",
                "token2",
                "user[password]",
                "passwordConfirm",
                "token_value",
                "new.password",
                "client_secret",
                "api_key",
                "X-Api-Key",
                "apikey",
                "aws_secret_access_key",
                "Ocp-Apim-Subscription-Key",
                "code_verifier",
            ],
            Some(Weight::Secret),
        );
        check(&["X-Amz-Signature", "X-Goog-Signature", "jsessionid", "SAMLResponse", "hmac"], Some(Weight::InAddress));
        check(&["key", "sig", "sid", "session_id", "auth"], Some(Weight::Suspicious));
        check(&["code", "state"], Some(Weight::SignIn));
    }

    #[test]
    fn harmless() {
        check(
            &[
                "token_type",
                "progressToken",
                "nextCursor",
                "nextPageToken",
                "max_tokens",
                "tokens",
                "author",
                "monkey",
                "primary_key",
                "public_key",
                "keyboard",
                "tab_id",
                "window_id",
                "title",
                "url",
                "active",
                "password_length",
                "key_value",
                "country_code",
                "response_type",
                "design",
                "",
                "42",
            ],
            None,
        );
    }

    #[test]
    fn a_long_name_is_judged_by_its_end() {
        let long = format!("{}_access_token", "a".repeat(5000));
        assert_eq!(weigh(long.as_bytes()), Some(Weight::Secret));
    }
}
