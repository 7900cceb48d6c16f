// The price of a bitcoin from btc-priced: node price.mjs
import { connect } from "node:net";

const path = process.env.BTC_PRICED_SOCKET ?? "/run/btc-priced/io.btcpriced.Price";
const daemon = connect(path, () => {
  // A price that is older than a minute is an error.
  daemon.write('{"method":"io.btcpriced.Price.GetPrice","parameters":{"maxAgeMs":60000}}\0');
});
daemon.setEncoding("utf8");
daemon.setTimeout(5000, () => daemon.destroy(new Error("btc-priced does not respond")));
daemon.on("error", (error) => {
  console.error(error.message);
  process.exitCode = 1;
});

let text = "";
daemon.on("data", (part) => {
  text += part;
  if (!text.endsWith("\0")) return;
  daemon.end();
  const { error, parameters } = JSON.parse(text.slice(0, -1));
  const state = parameters?.state;
  if (error || !state?.quote || state.confirmation !== "confirmed") {
    console.error(`no price that is new and confirmed: ${text}`);
    process.exitCode = 1;
    return;
  }
  // The value is an exact decimal: a number of JavaScript could round it.
  console.log(state.quote.value, state.quote.currency, state.freshness, state.confirmation, state.quote.source);
});
