// A small daemon that keeps the price: net/http with its kept connection, a file, and a Unix socket.
//
//	daemon URL FILE SOCKET MILLISECONDS [CA-FILE]
//
// A client that sends `price` gets a line; one that sends `watch` gets one at each tick.
package main

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"
)

type keeper struct {
	lock     sync.Mutex
	price    string
	watchers map[net.Conn]bool
}

func (k *keeper) fetch(client *http.Client, url string) (string, error) {
	response, err := client.Get(url)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("status %d", response.StatusCode)
	}
	var body struct{ Price string }
	if err := json.NewDecoder(response.Body).Decode(&body); err != nil {
		return "", err
	}
	return body.Price, nil
}

func (k *keeper) keep(price, file string) {
	line := []byte(price + "\n")
	if os.WriteFile(file+".new", line, 0o644) == nil {
		_ = os.Rename(file+".new", file)
	}
	k.lock.Lock()
	defer k.lock.Unlock()
	k.price = price
	for watcher := range k.watchers {
		if _, err := watcher.Write(line); err != nil {
			delete(k.watchers, watcher)
		}
	}
}

func (k *keeper) serve(client net.Conn) {
	defer client.Close()
	lines := bufio.NewScanner(client)
	for lines.Scan() {
		k.lock.Lock()
		if lines.Text() == "watch" {
			k.watchers[client] = true
		}
		_, err := client.Write([]byte(k.price + "\n"))
		k.lock.Unlock()
		if err != nil {
			break
		}
	}
	k.lock.Lock()
	delete(k.watchers, client)
	k.lock.Unlock()
}

func main() {
	url, file, path := os.Args[1]+"/api/v3/ticker/price?symbol=BTCUSDT", os.Args[2], os.Args[3]
	milliseconds, err := strconv.Atoi(os.Args[4])
	if err != nil {
		log.Fatal(err)
	}
	client := &http.Client{Timeout: time.Second}
	if len(os.Args) > 5 {
		pem, err := os.ReadFile(os.Args[5])
		if err != nil {
			log.Fatal(err)
		}
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(pem)
		client.Transport = &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}
	}
	_ = os.Remove(path)
	listener, err := net.Listen("unix", path)
	if err != nil {
		log.Fatal(err)
	}
	k := &keeper{price: "-", watchers: map[net.Conn]bool{}}
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				log.Fatal(err)
			}
			go k.serve(client)
		}
	}()
	ticker := time.NewTicker(time.Duration(milliseconds) * time.Millisecond)
	for {
		if price, err := k.fetch(client, url); err == nil {
			k.keep(price, file)
		}
		<-ticker.C
	}
}
