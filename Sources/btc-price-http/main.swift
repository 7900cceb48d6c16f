await HTTPGateway.main()
