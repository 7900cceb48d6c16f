// A small client of the four exchanges' streams. It keeps the newest price of each, and sends them to the clients of a Unix socket when
// one has changed: like btc-priced, at most once in 100 ms.
//
//	streams SOCKET BINANCE COINBASE BITSTAMP KRAKEN      the exchanges as HOST:PORT, without TLS
package main

import (
	"bufio"
	"crypto/rand"
	"crypto/sha1"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/textproto"
	"os"
	"strings"
	"sync"
	"time"
)

const (
	text, closing, ping, pong = 1, 8, 9, 10
	longest                   = 1 << 20
)

// An exchange: its stream, the subscription if it needs one, and the price in a message, empty if there is none.
type exchange struct {
	name, target, subscription string
	price                      func(message []byte) (string, error)
}

var exchanges = []exchange{
	{"binance", "/stream?streams=btcusdt@aggTrade", "", func(message []byte) (string, error) {
		var body struct {
			Data struct {
				Event  string `json:"e"`
				Sent   int64  `json:"E"`
				Number int64  `json:"a"`
				Price  string `json:"p"`
				Time   int64  `json:"T"`
			}
		}
		err := json.Unmarshal(message, &body)
		return body.Data.Price, err
	}},
	{"coinbase", "/", `{"type":"subscribe","product_ids":["BTC-USD"],"channels":["ticker","heartbeat"]}`, func(message []byte) (string, error) {
		var body struct {
			Price  string
			Time   time.Time
			Number int64 `json:"trade_id"`
		}
		err := json.Unmarshal(message, &body)
		return body.Price, err
	}},
	{"bitstamp", "/", `{"event":"bts:subscribe","data":{"channel":"live_trades_btcusd"}}`, func(message []byte) (string, error) {
		var body struct {
			Data struct {
				Price string `json:"price_str"`
				Time  string `json:"microtimestamp"`
			}
		}
		err := json.Unmarshal(message, &body)
		return body.Data.Price, err
	}},
	{"kraken", "/v2", `{"method":"subscribe","params":{"channel":"ticker","symbol":["BTC/USD"],"event_trigger":"trades"}}`, func(message []byte) (string, error) {
		var body struct {
			Channel string
			Data    []struct {
				Last json.Number
				Time time.Time `json:"timestamp"`
			}
		}
		err := json.Unmarshal(message, &body)
		if err != nil || body.Channel != "ticker" || len(body.Data) == 0 {
			return "", err
		}
		return body.Data[0].Last.String(), nil
	}},
}

// A WebSocket connection of a client (RFC 6455).
type stream struct {
	connection net.Conn
	reader     *bufio.Reader
	payload    []byte
}

func open(address, target string) (*stream, error) {
	connection, err := net.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	nonce := make([]byte, 16)
	if _, err := rand.Read(nonce); err != nil {
		return nil, err
	}
	key := base64.StdEncoding.EncodeToString(nonce)
	if _, err := fmt.Fprintf(connection, "GET %s HTTP/1.1\r\nHost: %s\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"+
		"Sec-WebSocket-Key: %s\r\nSec-WebSocket-Version: 13\r\n\r\n", target, address, key); err != nil {
		return nil, err
	}
	reader := bufio.NewReader(connection)
	head := textproto.NewReader(reader)
	status, err := head.ReadLine()
	if err != nil {
		return nil, err
	}
	header, err := head.ReadMIMEHeader()
	if err != nil {
		return nil, err
	}
	sum := sha1.Sum([]byte(key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	if !strings.HasPrefix(status, "HTTP/1.1 101 ") || header.Get("Sec-WebSocket-Accept") != base64.StdEncoding.EncodeToString(sum[:]) {
		return nil, fmt.Errorf("no upgrade: %s", status)
	}
	return &stream{connection: connection, reader: reader}, nil
}

// Sends a frame of at most 65,535 bytes.
func (s *stream) send(opcode byte, payload []byte) error {
	frame := []byte{0x80 | opcode}
	if len(payload) < 126 {
		frame = append(frame, 0x80|byte(len(payload)))
	} else {
		frame = append(frame, 0x80|126, byte(len(payload)>>8), byte(len(payload)))
	}
	var mask [4]byte
	if _, err := rand.Read(mask[:]); err != nil {
		return err
	}
	frame = append(frame, mask[:]...)
	for index, octet := range payload {
		frame = append(frame, octet^mask[index%4])
	}
	_, err := s.connection.Write(frame)
	return err
}

// Reads the next frame, and appends its payload to that of the message.
func (s *stream) frame() (opcode byte, isLast bool, payload []byte, err error) {
	var head [8]byte
	if _, err = io.ReadFull(s.reader, head[:2]); err != nil {
		return
	}
	opcode, isLast = head[0]&0x0f, head[0]&0x80 != 0
	if head[0]&0x70 != 0 || head[1]&0x80 != 0 {
		return opcode, isLast, nil, fmt.Errorf("a frame of another shape")
	}
	length := uint64(head[1])
	switch length {
	case 126:
		_, err = io.ReadFull(s.reader, head[:2])
		length = uint64(binary.BigEndian.Uint16(head[:2]))
	case 127:
		_, err = io.ReadFull(s.reader, head[:8])
		length = binary.BigEndian.Uint64(head[:8])
	}
	if err != nil {
		return
	}
	start := len(s.payload)
	if length > longest || uint64(start)+length > longest {
		return opcode, isLast, nil, fmt.Errorf("a frame of %d bytes", length)
	}
	if need := start + int(length); need > cap(s.payload) {
		s.payload = append(make([]byte, 0, 2*need), s.payload...)
	}
	payload = s.payload[start : start+int(length)]
	_, err = io.ReadFull(s.reader, payload)
	return
}

// The next text message. It is valid until the next call.
func (s *stream) message() ([]byte, error) {
	s.payload = s.payload[:0]
	for {
		opcode, isLast, payload, err := s.frame()
		if err != nil {
			return nil, err
		}
		switch opcode {
		case ping:
			if err := s.send(pong, payload); err != nil {
				return nil, err
			}
		case pong:
		case closing:
			return nil, fmt.Errorf("closed by the exchange: %q", payload)
		default: // a text or its continuation
			s.payload = s.payload[:len(s.payload)+len(payload)]
			if isLast {
				return s.payload, nil
			}
		}
	}
}

type keeper struct {
	lock     sync.Mutex
	prices   map[string]string
	watchers map[net.Conn]bool
	changed  chan struct{}
}

func (k *keeper) follow(exchange exchange, address string) error {
	stream, err := open(address, exchange.target)
	if err != nil {
		return err
	}
	if exchange.subscription != "" {
		if err := stream.send(text, []byte(exchange.subscription)); err != nil {
			return err
		}
	}
	for {
		message, err := stream.message()
		if err != nil {
			return err
		}
		price, err := exchange.price(message)
		if err != nil {
			return err
		}
		if price != "" {
			k.keep(exchange.name, price)
		}
	}
}

func (k *keeper) keep(name, price string) {
	k.lock.Lock()
	isNew := k.prices[name] != price
	k.prices[name] = price
	k.lock.Unlock()
	if isNew {
		select {
		case k.changed <- struct{}{}:
		default:
		}
	}
}

func (k *keeper) tell() {
	for range k.changed {
		k.lock.Lock()
		line, err := json.Marshal(k.prices)
		if err != nil {
			log.Fatal(err)
		}
		for watcher := range k.watchers {
			if _, err := watcher.Write(append(line, '\n')); err != nil {
				delete(k.watchers, watcher)
			}
		}
		k.lock.Unlock()
		time.Sleep(100 * time.Millisecond)
	}
}

func main() {
	if len(os.Args) != 2+len(exchanges) {
		log.Fatal("usage: streams SOCKET BINANCE COINBASE BITSTAMP KRAKEN")
	}
	listener, err := net.Listen("unix", os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	k := &keeper{prices: map[string]string{}, watchers: map[net.Conn]bool{}, changed: make(chan struct{}, 1)}
	go k.tell()
	for index, exchange := range exchanges {
		exchange, address := exchange, os.Args[2+index]
		go func() { log.Fatal(exchange.name, ": ", k.follow(exchange, address)) }()
	}
	for {
		client, err := listener.Accept()
		if err != nil {
			log.Fatal(err)
		}
		k.lock.Lock()
		k.watchers[client] = true
		k.lock.Unlock()
	}
}
