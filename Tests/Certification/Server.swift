import TestSupport
import Glibc
import Synchronization
import Varlink

/// The service: checks each call, and replies with the values for the next one. Each connection has a thread.
final class CertificationServer: Sendable {
    private let definition: InterfaceDefinition
    private let service = ServiceInterface(
        info: ServiceInterface.Info(vendor: "btc-priced", product: "varlink-certification", version: "1", url: "-"),
        descriptions: [(Certification.name, Certification.text)])
    /// The place in the order that each client has reached.
    private let clients = Mutex<[String: Int]>([:])

    init() throws {
        definition = try InterfaceDefinition(parsing: Certification.text)
    }

    func serve(path: String) {
        guard let address = UnixSocketAddress(path: path) else { fatalError("too long: \(path)") }
        let listener = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        unlink(path)
        guard address.withSocketAddress({ bind(listener, $0, $1) }) == 0, listen(listener, 16) == 0 else {
            fatalError("cannot listen at \(path): \(String(cString: strerror(errno)))")
        }
        _ = write(STDOUT_FILENO, "ready\n", 6)
        while true {
            let connection = accept(listener, nil, nil)
            guard connection >= 0 else { continue }
            var thread = pthread_t()
            let body = Unmanaged.passRetained(Conversation(server: self, descriptor: connection))
            pthread_create(
                &thread, nil,
                { pointer in
                    if let pointer { Unmanaged<Conversation>.fromOpaque(pointer).takeRetainedValue().run() }
                    return nil
                }, body.toOpaque())
            pthread_detach(thread)
        }
    }

    /// The replies to a call, in order.
    fileprivate func replies(to call: Call) -> [Reply] {
        guard let interface = call.interface else { return [.methodNotFound(call.method)] }
        if interface == ServiceInterface.name { return [service.reply(to: call)] }
        let method = call.name
        guard interface == Certification.name else { return [.interfaceNotFound(String(interface))] }
        guard case .method(let parameters, let result)? = definition.member(method)?.kind else {
            return [.methodNotFound(call.method)]
        }
        do {
            try definition.check(call.parameters, parameters)
        } catch {
            return [.invalidParameter(JSONValue(.string(error.path)))]
        }
        let replies = judge(call, method)
        // Our replies must conform to the definition too.
        for reply in replies where reply.error == nil {
            do {
                try definition.check(reply.parameters, result)
            } catch {
                fatalError("a reply of ours to \(method): \(error)")
            }
        }
        return replies
    }

    private func judge(_ call: Call, _ method: String) -> [Reply] {
        if method == "Start" {
            let id = String(UInt64.random(in: 1 ... .max), radix: 16)
            clients.withLock { $0[id] = 1 }
            return [Reply(parameters: ["client_id": .string(id)])]
        }
        var parameters = call.parameters.tree
        let id = parameters["client_id"]?.stringValue ?? ""
        parameters["client_id"] = nil
        guard let place = clients.withLock({ $0[id] }) else {
            return [Reply(error: "\(Certification.name).ClientIdError")]
        }
        let wanted = Certification.parameters(of: method)
        guard Certification.order[place] == method, JSON.object(parameters).means(.object(wanted)),
            call.more == (method == "Test10"), call.oneway == (method == "Test11")
        else {
            return [
                Reply(
                    parameters: [
                        "wants": .object(["method": .string(Certification.order[place]), "parameters": .object(wanted)]
                        ),
                        "got": .object(["method": .string(method), "parameters": .object(parameters)]),
                    ], error: "\(Certification.name).CertificationError")
            ]
        }
        clients.withLock { $0[id] = method == "End" ? nil : place + 1 }
        if method == "Test10" {
            return Certification.lastMoreReplies.map {
                Reply(parameters: ["string": .string($0)], continues: $0 != Certification.lastMoreReplies.last)
            }
        }
        return [Reply(parameters: Certification.replies[method] ?? [:])]
    }
}

private final class Conversation {
    private let server: CertificationServer
    private let descriptor: Int32
    private var input = MessageBuffer(limit: 1 << 20)

    init(server: CertificationServer, descriptor: Int32) {
        self.server = server
        self.descriptor = descriptor
    }

    func run() {
        defer { close(descriptor) }
        var buffer = [UInt8](repeating: 0, count: 4096)
        while true {
            let count = recv(descriptor, &buffer, buffer.count, 0)
            guard count > 0 else { return }
            input.append(buffer[..<count])
            do {
                while let message = try input.next() {
                    let call = try Call(decoding: message)
                    let replies = server.replies(to: call)
                    if call.oneway { continue }
                    let bytes = replies.flatMap { $0.encoded() }
                    var sent = 0
                    while sent < bytes.count {
                        let count = send(descriptor, Array(bytes[sent...]), bytes.count - sent, Int32(MSG_NOSIGNAL))
                        guard count > 0 else { return }
                        sent += count
                    }
                }
            } catch {
                return
            }
        }
    }
}
