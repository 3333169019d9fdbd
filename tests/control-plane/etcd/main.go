// Command etcd is a single etcd member on loopback for a control plane that lives as long as a test run: it never
// syncs to disk, because nobody restores it.
package main

import (
	"flag"
	"log"
	"net/url"

	"go.etcd.io/etcd/server/v3/embed"
)

func main() {
	data := flag.String("data-dir", "", "where to keep the data, best in memory (required)")
	client := flag.String("client", "http://127.0.0.1:2379", "the URL API servers connect to")
	peer := flag.String("peer", "http://127.0.0.1:2380", "the URL other members would connect to")
	flag.Parse()
	if *data == "" {
		log.Fatal("--data-dir is missing")
	}
	clients, peers := []url.URL{parse(*client)}, []url.URL{parse(*peer)}

	config := embed.NewConfig()
	config.Dir = *data
	config.ListenClientUrls, config.AdvertiseClientUrls = clients, clients
	config.ListenPeerUrls, config.AdvertisePeerUrls = peers, peers
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	config.UnsafeNoFsync = true
	config.QuotaBackendBytes = 8 << 30
	config.LogLevel = "error"

	member, err := embed.StartEtcd(config)
	if err != nil {
		log.Fatal(err)
	}
	<-member.Server.ReadyNotify()
	log.Print("ready")
	log.Fatal(<-member.Err())
}

func parse(text string) url.URL {
	address, err := url.Parse(text)
	if err != nil {
		log.Fatal(err)
	}
	return *address
}
