package import Varlink

extension JSON {
    /// Reads a text into a value of its own.
    package init(parsing bytes: some Collection<UInt8>) throws(JSONError) {
        self.init(try JSONValue(parsing: Array(bytes)[...]))
    }
}

extension JSONValue {
    /// The members of an object as a value of their own, to be changed.
    package var tree: JSONObject { JSON(self).objectValue ?? [:] }
}

extension JSONObject {
    /// The object as it is read.
    package var value: JSONValue { JSONValue(.object(self)) }
}

extension Call {
    /// The method without its interface.
    package var name: String { method.split(separator: ".").last.map(String.init) ?? "" }
}
