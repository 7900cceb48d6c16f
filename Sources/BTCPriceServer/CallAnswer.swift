package import BTCPriceAPI
package import Varlink

/// The reply to a call that was handled outside the loop, encoded there: it may be long.
package struct CallAnswer: Sendable {
    /// The encoded reply, NUL included.
    let bytes: [UInt8]
    /// Whether it is an error.
    let isError: Bool
    /// The call that gets the reply after it, which is made once the client has taken this one; `nil` if this completes the call.
    let next: PriceCall?

    /// - Parameter next: Gets the reply after it. This one then says that others follow.
    package init(_ reply: Reply, next: PriceCall? = nil) {
        var reply = reply
        if next != nil { reply.continues = true }
        bytes = reply.encoded()
        isError = reply.error != nil
        self.next = next
    }
}
