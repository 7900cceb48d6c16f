import Varlink

/// `org.varlink.certification` (varlink.org): each call sends the values of the reply before it, so every kind of value goes both ways.
enum Certification {
    static let name = "org.varlink.certification"

    static let text = """
        # Tries a Varlink implementation against others: Start, Test01 to Test11, End. The reply of each call is the argument of
        # the next one.
        interface org.varlink.certification

        type Interface (
          foo: ?[]?[string](foo, bar, baz),
          anon: (foo: bool, bar: bool)
        )

        type MyType (
          object: object,
          enum: (one, two, three),
          struct: (first: int, second: string),
          array: []string,
          dictionary: [string]string,
          stringset: [string](),
          nullable: ?string,
          nullable_array_struct: ?[](first: int, second: string),
          interface: Interface
        )

        method Start() -> (client_id: string)

        method Test01(client_id: string) -> (bool: bool)

        method Test02(client_id: string, bool: bool) -> (int: int)

        method Test03(client_id: string, int: int) -> (float: float)

        method Test04(client_id: string, float: float) -> (string: string)

        method Test05(client_id: string, string: string) -> (
          bool: bool,
          int: int,
          float: float,
          string: string
        )

        method Test06(client_id: string, bool: bool, int: int, float: float, string: string) -> (
          struct: (bool: bool, int: int, float: float, string: string)
        )

        method Test07(
          client_id: string,
          struct: (bool: bool, int: int, float: float, string: string)
        ) -> (map: [string]string)

        method Test08(client_id: string, map: [string]string) -> (set: [string]())

        method Test09(client_id: string, set: [string]()) -> (mytype: MyType)

        # More than one reply.
        method Test10(client_id: string, mytype: MyType) -> (string: string)

        # Called as oneway.
        method Test11(client_id: string, last_more_replies: []string) -> ()

        method End(client_id: string) -> (all_ok: bool)

        error ClientIdError ()

        error CertificationError (wants: object, got: object)

        """

    /// The calls in their order.
    static let order = ["Start"] + (1...11).map { $0 < 10 ? "Test0\($0)" : "Test\($0)" } + ["End"]

    private static let values: JSONObject = [
        "bool": .bool(false), "int": .integer(2), "float": .number("3.141592653589793"),
        "string": .string("a lot of string"),
    ]
    private static let map: JSON = .object(["foo": .string("Foo"), "bar": .string("Bar")])
    private static let set: JSON = .object(["one": .object([:]), "two": .object([:]), "three": .object([:])])

    /// The reply to each call, except those to Test10 and Start.
    static let replies: [String: JSONObject] = [
        "Test01": ["bool": .bool(true)],
        "Test02": ["int": .integer(1)],
        "Test03": ["float": .number("1.0")],
        "Test04": ["string": .string("ping")],
        "Test05": values,
        "Test06": ["struct": .object(values)],
        "Test07": ["map": map],
        "Test08": ["set": set],
        "Test09": [
            "mytype": .object([
                "object": .object([
                    "method": .string("org.varlink.certification.Test09"), "parameters": .object(["map": map]),
                ]),
                "enum": .string("two"),
                "struct": .object(["first": .integer(1), "second": .string("2")]),
                "array": .array([.string("one"), .string("two"), .string("three")]),
                "dictionary": map,
                "stringset": set,
                "nullable": .null,
                "nullable_array_struct": .null,
                "interface": .object([
                    "foo": .array([
                        .null, .object(["foo": .string("foo"), "bar": .string("bar")]), .null,
                        .object(["one": .string("foo"), "two": .string("bar")]),
                    ]),
                    "anon": .object(["foo": .bool(true), "bar": .bool(false)]),
                ]),
            ])
        ],
        "Test11": [:],
        "End": ["all_ok": .bool(true)],
    ]

    static let lastMoreReplies = (1...10).map { "Reply number \($0)" }

    /// The parameters that a call must have, except `client_id`.
    static func parameters(of method: String) -> JSONObject {
        switch method {
        case "Start", "Test01", "End": return [:]
        case "Test11": return ["last_more_replies": .array(lastMoreReplies.map { .string($0) })]
        default:
            guard let place = order.firstIndex(of: method), place > 0 else { return [:] }
            return replies[order[place - 1]] ?? [:]
        }
    }
}

extension JSON {
    /// Whether two values mean the same: the order of members is irrelevant, an absent member is null, 1 is 1.0.
    func means(_ other: JSON) -> Bool {
        switch (self, other) {
        case (.object(let first), .object(let second)):
            let names = Set((first.members + second.members).map(\.name))
            return names.allSatisfy { (first[$0] ?? .null).means(second[$0] ?? .null) }
        case (.array(let first), .array(let second)):
            return first.count == second.count && zip(first, second).allSatisfy { $0.means($1) }
        case (.integer, .number), (.number, .integer), (.number, .number):
            return Double(text) == Double(other.text)
        default: return self == other
        }
    }
}
