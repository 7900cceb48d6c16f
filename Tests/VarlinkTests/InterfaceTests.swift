import TestSupport
import Testing
import Varlink

@Suite struct InterfaceTests {
    private static let sample = """
        # A shop.
        #
        # It sells.
        interface org.example.shop-2.x

        # What it sells.
        type Item (
          # Its name
          name: string,
          price: ?float,
          tags: []string,
          sizes: [string]?int,
          kind: (big, small),
          where: (street: string, number: int),
          more: ?[]Item,
          any: object
        )

        type Colour (red, green)

        # Of one kind.
        method List(kind: ?(big, small), first: bool) -> (items: []Item)

        method Ping() -> ()

        error Closed (until: int)

        """

    @Test func `a parsed definition is printed unchanged`() throws {
        let interface = try InterfaceDefinition(parsing: Self.sample)
        #expect(interface.description == Self.sample)
        #expect(interface.name == "org.example.shop-2.x")
        #expect(interface.documentation == ["A shop.", "", "It sells."])
        #expect(interface.members.map(\.name) == ["Item", "Colour", "List", "Ping", "Closed"])
        #expect(
            interface.member("List")
                == InterfaceDefinition.Member(
                    documentation: ["Of one kind."], name: "List",
                    kind: .method(
                        parameters: [
                            .init(name: "kind", type: .optional(.enumeration(["big", "small"]))),
                            .init(name: "first", type: .bool),
                        ], reply: [.init(name: "items", type: .array(.named("Item")))])))
    }

    @Test func `white space and comments are allowed anywhere`() throws {
        let text = "interface a.b\nmethod#x\nM ( a #y\n: #z\n []string ,\tb:int)->( )# end"
        let interface = try InterfaceDefinition(parsing: text)
        #expect(interface.description == "interface a.b\n\nmethod M(a: []string, b: int) -> ()\n")
    }

    @Test func `a comment that begins with an accent is printed as it was parsed`() throws {
        for comment in ["#\u{301}", "# \u{301}", "#  \u{301}"] {
            let interface = try InterfaceDefinition(parsing: "\(comment)\ninterface a.b\nmethod M()->()")
            #expect(try InterfaceDefinition(parsing: interface.description) == interface)
        }
    }

    @Test func `org.varlink.service is printed as in its specification`() throws {
        let interface = try InterfaceDefinition(parsing: ServiceInterface.description)
        #expect(try InterfaceDefinition(parsing: interface.description) == interface)
        #expect(interface.members.map(\.name).prefix(2) == ["GetInfo", "GetInterfaceDescription"])
    }

    @Test(arguments: [
        ("", 1, "expected 'interface'"), ("interface a", 1, "expected an interface's name"),
        ("interface a.b", 1, "an interface without members"), ("interface a..b\nmethod M() -> ()", 1, "name"),
        ("interface a.b\n\nmethod m() -> ()", 3, "expected a member's name"),
        ("interface a.b\nmethod M()", 2, "expected '->'"), ("interface a.b\nmethod M(a) -> ()", 2, "expected fields"),
        ("interface a.b\ntype T (a, b: int)", 2, "some have a type and some have none"),
        ("interface a.b\ntype T (a: ??int)", 2, "'?' twice"), ("interface a.b\ntype T (a: int, a: int)", 2, "twice"),
        ("interface a.b\ntype T (a: whatever)", 2, "expected a type"),
        ("interface a.b\ntype T (a: Other)", 1, "'Other' is not defined"),
        ("interface a.b\nmethod M() -> ()\nerror M ()", 1, "'M' is defined twice"),
        ("interface a.b\ntype T (a_: int)", 2, "expected a field's name"),
        ("interface a.b\ntype T (a: int", 2, "expected ','"), ("interface a.b\nthing X ()", 2, "expected type, method"),
    ])
    func `a syntax error is reported with its line`(text: String, line: Int, reason: String) {
        let error = #expect(throws: InterfaceDefinitionError.self) { try InterfaceDefinition(parsing: text) }
        #expect(error?.line == line)
        #expect(error?.reason.contains(reason) == true, "\(error?.reason ?? "")")
    }

    @Test func `endless nesting does not use up the stack`() {
        for opening in ["(a:", "[]", "?", "?[]"] {
            let text = "interface a.b\ntype T (a: \(String(repeating: opening, count: 100_000))"
            #expect(throws: InterfaceDefinitionError.self) { try InterfaceDefinition(parsing: text) }
        }
    }

    @Test(arguments: [
        (#"{"name":"x","tags":[],"sizes":{},"kind":"big","where":{"street":"s","number":1},"any":1}"#, nil),
        (
            #"{"name":1,"tags":[],"sizes":{},"kind":"big","where":{"street":"s","number":1},"any":1}"#,
            "name: expected string, not 1"
        ),
        (
            #"{"tags":[],"sizes":{},"kind":"big","where":{"street":"s","number":1},"any":1}"#,
            "name: expected string, not null"
        ),
        (
            #"{"name":"x","tags":["a",2],"sizes":{},"kind":"big","where":{"street":"s","number":1},"any":1}"#,
            "tags[1]: expected string, not 2"
        ),
        (
            #"{"name":"x","tags":[],"sizes":{"a":"b"},"kind":"big","where":{"street":"s","number":1},"any":1}"#,
            "sizes.a: expected int, not \"b\""
        ),
        (
            #"{"name":"x","tags":[],"sizes":{},"kind":"huge","where":{"street":"s","number":1},"any":1}"#,
            "kind: expected (big, small), not \"huge\""
        ),
        (
            #"{"name":"x","tags":[],"sizes":{},"kind":"big","where":{"street":"s","number":1.5},"any":1}"#,
            "where.number: expected int, not 1.5"
        ),
        (
            #"{"name":"x","tags":[],"sizes":{},"kind":"big","where":{"street":"s","number":1},"any":1,"extra":1}"#,
            "extra: not in the definition"
        ),
        (
            #"{"name":"x","tags":[],"sizes":{},"kind":"big","where":{"street":"s","number":1},"any":1,"more":[{}]}"#,
            "more[0].name: expected string, not null"
        ),
    ])
    func `a message is checked against its definition`(text: String, complaint: String?) throws {
        let interface = try InterfaceDefinition(parsing: Self.sample)
        guard case .type(.structure(let fields))? = interface.member("Item")?.kind else { throw MissingType() }
        let object = try JSONValue(parsing: Array(text.utf8)[...])
        do {
            try interface.check(object, fields)
            #expect(complaint == nil)
        } catch {
            #expect("\(error)" == complaint)
        }
    }

    struct MissingType: Error {}
}
