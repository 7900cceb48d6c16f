// The state of the price from btc-priced, as JSON without a package: rustc price.rs && ./price
// Read it with a package such as serde_json, and keep quote.value as text: it is an exact decimal.
use std::io::{BufRead, BufReader, Error, ErrorKind, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

fn main() -> Result<(), Error> {
    let path = std::env::var("BTC_PRICED_SOCKET").unwrap_or("/run/btc-priced/io.btcpriced.Price".into());
    let mut daemon = UnixStream::connect(path)?;
    daemon.set_read_timeout(Some(Duration::from_secs(5)))?;
    // A price that is older than a minute is an error.
    daemon.write_all(b"{\"method\":\"io.btcpriced.Price.GetPrice\",\"parameters\":{\"maxAgeMs\":60000}}\0")?;
    let mut reply = Vec::new();
    BufReader::new(daemon).read_until(0, &mut reply)?;
    if reply.pop() != Some(0) {
        return Err(Error::new(ErrorKind::UnexpectedEof, "btc-priced closed the connection"));
    }
    let reply = String::from_utf8_lossy(&reply);
    println!("{reply}");
    // An error has this member: the price is too old, or there is none.
    if reply.contains("\"error\":\"io.btcpriced") {
        std::process::exit(1);
    }
    Ok(())
}
