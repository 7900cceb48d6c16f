/// Counts one venue's streams and their messages since the start.
package struct StreamCounter: Sendable, Equatable {
    package var open = 0
    /// The upgrades that were accepted.
    package var opened = 0
    /// The upgrades that were refused or got no response.
    package var refused = 0
    /// The messages that were sent, without pings and pongs.
    package var messages = 0
    /// The messages from clients.
    package var received = 0

    /// `open 1 opened 3 messages 812 received 2 refused 0`
    var text: String {
        "open \(open) opened \(opened) messages \(messages) received \(received) refused \(refused)"
    }
}
