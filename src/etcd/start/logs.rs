//! The logger, its level, its outputs (`embed/config_logging.go`).

use super::{About, Refusals};
use crate::etcd::config::Value;
use crate::etcd::versions::Version;

const LEVELS: [&str; 7] = ["debug", "info", "warn", "error", "dpanic", "panic", "fatal"];
/// Outputs that are no files.
const STREAMS: [&str; 3] = ["default", "stderr", "stdout"];

/// Applies the checks.
pub(super) fn check(all: &mut Refusals) {
    let before_3_5 = all.version < Version::new(3, 5, 0);
    let loggers: &[&str] = if before_3_5 { &["zap", "capnslog"] } else { &["zap"] };
    let logger = all.text("logger");
    if let Some(logger) = logger.as_ref().filter(|logger| !loggers.contains(&logger.as_str())) {
        all.key(About::Value, "logger", format!("`logger` is `{logger}`, not one of `{}`", loggers.join("`, `")));
    }
    // In a file 3.4 has capnslog where nothing is said.
    let zap = logger.as_deref() == Some("zap") || (logger.is_none() && !before_3_5);
    if let Some(level) = all.text("log-level") {
        let known = match before_3_5 {
            true => LEVELS.contains(&level.as_str()),
            false => level.is_empty() || LEVELS.contains(&level.to_lowercase().as_str()),
        };
        if !known {
            let message = format!("`log-level` is `{level}`, not one of `{}`", LEVELS.join("`, `"));
            all.key(About::Value, "log-level", message);
        }
    }
    if let Some(format) = all.text("log-format").filter(|f| !["", "json", "console"].contains(&f.as_str())) {
        all.key(About::Value, "log-format", format!("`log-format` is `{format}`, not one of `json`, `console`"));
    }
    outputs(all, zap);
}

fn outputs(all: &mut Refusals, zap: bool) {
    let outputs = all.texts("log-outputs");
    if !zap && outputs.len() > 1 {
        all.key(About::Value, "log-outputs", "`log-outputs` has more than one, which only `logger: zap` can have");
    }
    if zap && outputs.len() > 1 && outputs.iter().any(|output| output == "default") {
        all.key(About::Value, "log-outputs", "`log-outputs` has `default` and others");
    }
    if !all.flag("enable-log-rotation") {
        return;
    }
    let files = outputs.iter().filter(|output| !STREAMS.contains(&output.as_str())).count();
    if files > 1 || (files == 0 && outputs.len() <= 1) {
        all.key(About::Value, "enable-log-rotation", "`enable-log-rotation` needs one file in `log-outputs`");
    }
    let Some(Value::Text(text)) = all.config.entry(None, "log-rotation-config-json").map(|e| e.value.clone()) else {
        return;
    };
    match serde_json::from_str::<serde_json::Value>(&text) {
        Ok(value) if value.is_object() => {}
        Ok(_) => all.key(About::Value, "log-rotation-config-json", "`log-rotation-config-json` is no JSON object"),
        Err(error) => {
            let message = format!("`log-rotation-config-json` is no JSON: {error}");
            all.key(About::Value, "log-rotation-config-json", message);
        }
    }
}
