/// The reply to a call that was handled outside the loop. It is encoded there, since it may be long.
package struct CallAnswer: Sendable {
    /// The encoded reply, NUL included.
    let bytes: [UInt8]
    let isError: Bool
    /// The call that produces the next reply. It is handled once the client has taken this reply; `nil` if this one is the last.
    let next: PriceCall?

    /// - Parameter next: Produces the next reply. This reply then announces that others follow.
    package init(_ reply: Reply, next: PriceCall? = nil) {
        var reply = reply
        if next != nil { reply.continues = true }
        bytes = reply.encoded()
        isError = reply.error != nil
        self.next = next
    }
}
