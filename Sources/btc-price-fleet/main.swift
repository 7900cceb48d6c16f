import BTCPriceFleet

await Fleet.main()
