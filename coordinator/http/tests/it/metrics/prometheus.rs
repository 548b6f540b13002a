//! A real Prometheus reads the metrics and takes every query of the dashboard, where it is
//! installed.

use super::documents::{DASHBOARD, expressions};
use crate::farm::{Farm, PATIENCE};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A running Prometheus, which ends with this value.
struct Prometheus {
    child: Child,
    address: SocketAddr,
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Prometheus {
    /// Starts it on the example's settings for this target; None if it is not installed.
    fn start(folder: &Path, target: SocketAddr, token: &str) -> Option<Self> {
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let example = include_str!("../../../../../deploy/prometheus/prometheus.yml");
        let rules = include_str!("../../../../../deploy/prometheus/tessera.rules.yml");
        let settings =
            example.replace("127.0.0.1:7421", &target.to_string()).replace("15s", "500ms");
        std::fs::write(folder.join("prometheus.yml"), settings).unwrap();
        std::fs::write(folder.join("tessera.rules.yml"), rules).unwrap();
        std::fs::write(folder.join("tessera.token"), token).unwrap();
        let child = Command::new("prometheus")
            .arg("--config.file=prometheus.yml")
            .arg(format!("--web.listen-address={address}"))
            .arg("--storage.tsdb.path=tsdb")
            .current_dir(folder)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        child.ok().map(|child| Self { child, address })
    }

    /// Asks its API; None while it does not answer.
    fn ask(&self, query: &str) -> Option<Value> {
        let letters = query.bytes().map(|byte| match byte.is_ascii_alphanumeric() {
            true => char::from(byte).to_string(),
            false => format!("%{byte:02X}"),
        });
        let path = format!("/api/v1/query?query={}", letters.collect::<String>());
        let mut stream = TcpStream::connect(self.address).ok()?;
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        write!(stream, "GET {path} HTTP/1.0\r\nHost: {}\r\n\r\n", self.address).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        serde_json::from_str(answer.split_once("\r\n\r\n")?.1).ok()
    }

    /// Asks until there is a value.
    async fn value(&self, query: &str) -> String {
        let begun = Instant::now();
        loop {
            let answer = self.ask(query);
            let value = answer.as_ref().map(|answer| &answer["data"]["result"][0]["value"][1]);
            if let Some(value) = value.and_then(Value::as_str) {
                return value.to_owned();
            }
            assert!(begun.elapsed() < PATIENCE, "{query}: {answer:?}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn prometheus_reads_the_farm_and_takes_the_dashboard() {
    let folder = tempfile::tempdir().unwrap();
    let farm = Farm::start_in(folder.path(), |_| {}).await;
    let token = farm.scraper().await;
    let Some(prometheus) = Prometheus::start(folder.path(), farm.address(), &token) else {
        eprintln!(
            "SKIPPED: prometheus_reads_the_farm_and_takes_the_dashboard: there is no prometheus; \
             the package of this name has it"
        );
        return;
    };
    assert_eq!(prometheus.value("max(max_over_time(up{job=\"tessera\"}[1m]))").await, "1");
    assert_eq!(prometheus.value("tessera_build_info").await, "1");
    assert_eq!(prometheus.value("sum(tessera_jobs)").await, "0");
    let mut found = Vec::new();
    expressions(&serde_json::from_str(DASHBOARD).unwrap(), &mut found);
    let mut taken = 0;
    for query in found.iter().filter(|query| query.contains("$instance")) {
        let query = query.replace("$instance", ".*");
        let answer = prometheus.ask(&query).expect("it answers");
        assert_eq!(answer["status"], "success", "{query}: {answer}");
        taken += 1;
    }
    assert!(taken > 40, "{taken}");
    drop(prometheus);
    farm.coordinator.shutdown().await.unwrap();
}
