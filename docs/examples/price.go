// The price of a bitcoin from btc-priced, with its age: go run price.go
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"log"
	"net"
	"os"
	"time"
)

func main() {
	path := os.Getenv("BTC_PRICED_SOCKET")
	if path == "" {
		path = "/run/btc-priced/io.btcpriced.Price"
	}
	daemon, err := net.DialTimeout("unix", path, 5*time.Second)
	if err != nil {
		log.Fatal(err)
	}
	defer daemon.Close()
	daemon.SetDeadline(time.Now().Add(5 * time.Second))
	// A price that is older than a minute is an error.
	fmt.Fprint(daemon, `{"method":"io.btcpriced.Price.GetPrice","parameters":{"maxAgeMs":60000}}`+"\x00")
	message, err := bufio.NewReader(daemon).ReadBytes(0)
	if err != nil {
		log.Fatal(err)
	}
	var reply struct {
		Error      string
		Parameters struct {
			State struct {
				// The value is an exact decimal: keep it as text, or read it with math/big.
				Quote        *struct{ Value, Currency, Source string }
				Freshness    string
				Confirmation *string
			}
		}
	}
	if err := json.Unmarshal(message[:len(message)-1], &reply); err != nil {
		log.Fatal(err)
	}
	state := reply.Parameters.State
	if reply.Error != "" || state.Quote == nil || state.Confirmation == nil || *state.Confirmation != "confirmed" {
		log.Fatalf("no price that is new and confirmed: %s", message)
	}
	fmt.Println(state.Quote.Value, state.Quote.Currency, state.Freshness, *state.Confirmation, state.Quote.Source)
}
