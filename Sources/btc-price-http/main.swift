import BTCPriceHTTP

await HTTPGateway.main()
