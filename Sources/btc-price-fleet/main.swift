await Fleet.main()
