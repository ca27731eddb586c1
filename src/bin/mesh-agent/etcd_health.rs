//! How this node's etcd says that it is: `GET /health` of its metrics listener (etcd's `etcdhttp/metrics.go`).

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// More is no answer of etcd's.
const MOST: u64 = 16 * 1024;

/// Asks; what is wrong, in words.
pub async fn ask(address: &str, patience: Duration) -> Result<(), String> {
    let answer = tokio::time::timeout(patience, exchange(address)).await;
    match answer {
        Err(_) => Err(format!("etcd does not answer within {} s", patience.as_secs())),
        Ok(Err(error)) => Err(format!("etcd cannot be asked: {error}")),
        Ok(Ok(answer)) => judge(&answer),
    }
}

async fn exchange(address: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address).await?;
    let request = format!("GET /health HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    stream.take(MOST).read_to_end(&mut answer).await?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

/// `{"health":"true"}` and, from 3.5 on, a reason when not.
fn judge(answer: &str) -> Result<(), String> {
    let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    // The body may come in chunks: the object lies between the braces.
    let object = body.find('{').zip(body.rfind('}')).and_then(|(from, to)| body.get(from..=to)).unwrap_or_default();
    let value: serde_json::Value = serde_json::from_str(object).unwrap_or_default();
    match (value["health"].as_str(), value["reason"].as_str()) {
        (Some("true"), _) => Ok(()),
        (Some(_), Some(reason)) if !reason.is_empty() => Err(format!("etcd is not healthy: {reason}")),
        (Some(_), _) => Err("etcd is not healthy: it has no quorum".to_owned()),
        (None, _) => Err("etcd's health is not what etcd answers".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn etcds_answers() {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n";
        for (body, want) in [
            ("{\"health\":\"true\"}", Ok(())),
            ("{\"health\":\"true\",\"reason\":\"\"}\n", Ok(())),
            ("13\r\n{\"health\":\"true\"}\n\r\n0\r\n\r\n", Ok(())),
            ("{\"health\":\"false\"}", Err("it has no quorum")),
            ("{\"health\":\"false\",\"reason\":\"RAFT NO LEADER\"}", Err("RAFT NO LEADER")),
            ("<html>", Err("not what etcd answers")),
            ("", Err("not what etcd answers")),
        ] {
            match (judge(&format!("{head}{body}")), want) {
                (Ok(()), Ok(())) => {}
                (Err(why), Err(part)) => assert!(why.contains(part), "{body}: {why}"),
                (got, want) => panic!("{body}: {got:?}, not {want:?}"),
            }
        }
        assert!(judge("").is_err());
    }
}
