await AlertProgram.main()
