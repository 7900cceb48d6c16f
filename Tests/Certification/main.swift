import TestSupport
import Glibc
import Varlink

// `varlink-certification server PATH`, `varlink-certification client PATH`: org.varlink.certification on our own Varlink.

/// Makes all calls. Each sends the values of the reply before it.
func certify(path: String) throws {
    let definition = try InterfaceDefinition(parsing: Certification.text)
    var connection = try ClientConnection(path: path)
    var identity: JSONObject = [:]
    var last: JSONObject = [:]
    for method in Certification.order {
        guard case .method(let parameters, let result)? = definition.member(method)?.kind else { continue }
        var given = identity
        for field in parameters where field.name != "client_id" { given[field.name] = last[field.name] ?? .null }
        if method == "Test11" { given["last_more_replies"] = last["strings"] }
        let call = Call(
            method: "\(Certification.name).\(method)", parameters: given, oneway: method == "Test11",
            more: method == "Test10")
        try definition.check(given.value, parameters)
        try connection.send(call)
        switch method {
        case "Test11": last = [:]
        case "Test10":
            var strings: [JSON] = []
            while true {
                let reply = try connection.reply(timeout: .seconds(5))
                strings.append(try reply.result().tree["string"] ?? .null)
                if !reply.continues { break }
            }
            last = ["strings": .array(strings)]
        default:
            last = try connection.reply(timeout: .seconds(5)).result().tree
            // The Python server's reply to Test09 has a member that is not in the definition.
            if method == "Test09" { last["client_id"] = nil }
            try definition.check(last.value, result)
            if method == "Start" { identity = ["client_id": last["client_id"] ?? .null] }
        }
        print("\(method) ok")
    }
    guard last["all_ok"] == .bool(true) else { throw CertificationFailed() }
    print("Certification passed")
}

struct CertificationFailed: Error {}

let arguments = CommandLine.arguments.dropFirst()
guard arguments.count == 2, let role = arguments.first, let path = arguments.last, ["client", "server"].contains(role)
else {
    print("usage: varlink-certification client|server PATH")
    exit(64)
}
do {
    if role == "server" { try CertificationServer().serve(path: path) } else { try certify(path: path) }
} catch {
    print("failed: \(error)")
    exit(1)
}
