//! Serves the workloads `hello` and `echo` with axum.

use std::error::Error;

use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::{Map, Value, json};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

async fn hello() -> &'static str {
    "Hello, world!"
}

async fn receive_data(Json(data): Json<Map<String, Value>>) -> Json<Value> {
    Json(json!({ "received": true, "data": data }))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let address = std::env::args()
        .nth(1)
        .ok_or("expected ADDRESS:PORT to listen on")?;
    let app = Router::new()
        .route("/", get(hello))
        .route("/bench/receive_data", post(receive_data));
    let mut terminate = signal(SignalKind::terminate())?;
    axum::serve(TcpListener::bind(address).await?, app)
        .with_graceful_shutdown(async move {
            terminate.recv().await;
        })
        .await?;
    Ok(())
}
