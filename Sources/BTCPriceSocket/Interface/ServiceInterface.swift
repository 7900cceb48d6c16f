/// `org.varlink.service`, which every Varlink service implements (varlink.org, Service): it describes the service.
package enum ServiceInterface {
    package static let name = "org.varlink.service"

    /// The names and definitions of the daemon's interfaces.
    private static let descriptions: [(name: String, text: String)] = [
        (name, description), (PriceInterface.name, PriceInterface.description),
        (HistoryInterface.name, HistoryInterface.description),
    ]

    /// Replies to a call to this interface.
    package static func reply(to call: Call) -> Reply {
        // A reply without an error would mean that another protocol follows.
        if call.upgrade { return .methodNotImplemented(call.method) }
        switch call.method {
        case "org.varlink.service.GetInfo":
            for (name, _) in call.parameters.members { return .invalidParameter(name) }
            return Reply(parameters: [
                "vendor": .string(Product.vendor), "product": .string(Product.name),
                "version": .string(Product.version), "url": .string(Product.url),
                "interfaces": .array(descriptions.map { .string($0.name) }),
            ])
        case "org.varlink.service.GetInterfaceDescription":
            for (name, _) in call.parameters.members where !name.isString("interface") {
                return .invalidParameter(name)
            }
            guard let interface = call.parameters["interface"]?.stringValue else {
                return .invalidParameter(JSONValue(.string("interface")))
            }
            guard let found = descriptions.first(where: { $0.name == interface }) else {
                return .interfaceNotFound(interface)
            }
            return Reply(parameters: ["description": .string(found.text)])
        default: return .methodNotFound(call.method)
        }
    }

    package static let description = """
        # The Varlink Service Interface is provided by every varlink service. It
        # describes the service and the interfaces it implements.
        interface org.varlink.service

        # Get a list of all the interfaces a service provides and information
        # about the implementation.
        method GetInfo() -> (
          vendor: string,
          product: string,
          version: string,
          url: string,
          interfaces: []string
        )

        # Get the description of an interface that is implemented by this service.
        method GetInterfaceDescription(interface: string) -> (description: string)

        # The requested interface was not found.
        error InterfaceNotFound (interface: string)

        # The requested method was not found
        error MethodNotFound (method: string)

        # The interface defines the requested method, but the service does not
        # implement it.
        error MethodNotImplemented (method: string)

        # One of the passed parameters is invalid.
        error InvalidParameter (parameter: string)

        # Client is denied access
        error PermissionDenied ()

        # Method is expected to be called with 'more' set to true, but wasn't
        error ExpectedMore ()

        """
}

extension Reply {
    package static func interfaceNotFound(_ interface: String) -> Reply {
        service("InterfaceNotFound", ["interface": .string(interface.shortened)])
    }

    package static func methodNotFound(_ method: String) -> Reply {
        service("MethodNotFound", ["method": .string(method.shortened)])
    }

    package static func methodNotImplemented(_ method: String) -> Reply {
        service("MethodNotImplemented", ["method": .string(method.shortened)])
    }

    /// `org.varlink.service.InvalidParameter`
    /// - Parameter parameter: The parameter's name, a JSON string.
    package static func invalidParameter(_ parameter: JSONValue) -> Reply {
        service(
            "InvalidParameter", ["parameter": parameter.stringValue.map { .string($0.shortened) } ?? JSON(parameter)])
    }

    package static let permissionDenied = service("PermissionDenied", [:])

    package static let expectedMore = service("ExpectedMore", [:])

    private static func service(_ name: String, _ parameters: JSONObject) -> Reply {
        Reply(parameters: parameters, error: "\(ServiceInterface.name).\(name)")
    }
}

extension String {
    /// The text as an error repeats it: at most 64 characters, then `…`. A sender could make many replies of 8 KiB otherwise.
    package var shortened: String {
        utf8.count <= 64 || count <= 64 ? self : prefix(64) + "…"
    }
}
