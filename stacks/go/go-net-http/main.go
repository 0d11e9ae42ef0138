// Serves the workloads hello and echo with Go's standard library.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"log"
	"net/http"
	"os/signal"
	"syscall"
	"time"
)

type receipt struct {
	Received bool           `json:"received"`
	Data     map[string]any `json:"data"`
}

func hello(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = io.WriteString(w, "Hello, world!")
}

func receiveData(w http.ResponseWriter, r *http.Request) {
	var data map[string]any
	if err := json.NewDecoder(r.Body).Decode(&data); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(receipt{Received: true, Data: data})
}

func main() {
	address := flag.String("address", "127.0.0.1:8000", "where to listen")
	flag.Parse()

	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", hello)
	mux.HandleFunc("POST /bench/receive_data", receiveData)
	// Without a limit a client that sends nothing would keep its goroutine for ever.
	server := &http.Server{Addr: *address, Handler: mux, ReadHeaderTimeout: 10 * time.Second}

	stop, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		<-stop.Done()
		// Finishes the current requests, in less time than a supervisor usually waits.
		grace, cancel := context.WithTimeout(context.Background(), 3*time.Second)
		defer cancel()
		ended <- server.Shutdown(grace)
	}()
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		log.Fatal(err)
	}
	if err := <-ended; err != nil {
		log.Print(err)
	}
}
