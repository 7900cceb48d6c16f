import BTCPriceCore
import BTCPriceFeature
import BTCPriceSocket
import Glibc

/// The exit statuses of btcctl, from sysexits.h if one fits.
enum ExitStatus {
    static let success: Int32 = 0
    /// There is no price.
    static let noPrice: Int32 = 1
    /// The status of `wait` with several conditions, for the condition that holds.
    static func holds(_ kind: PriceCondition.Kind) -> Int32 {
        switch kind {
        case .above: 10
        case .below: 11
        case .change: 12
        }
    }
    /// `why`: there is a current price, and something is wrong.
    static let degraded: Int32 = 10
    /// EX_USAGE: the command line is wrong.
    static let usage: Int32 = 64
    /// EX_UNAVAILABLE: the daemon can't be reached.
    static let unreachable: Int32 = 69
    /// EX_IOERR: standard output or a file can't be written.
    static let outputFailed: Int32 = 74
    /// EX_TEMPFAIL: the price is older, less sure or less precise than wanted, did not come in time, or the daemon is busy.
    static let tooOld: Int32 = 75
    /// EX_NOPERM: not allowed for this user.
    static let notPermitted: Int32 = 77
}

/// An error that ends a command: a word for programs, a line for people and an exit status for scripts.
struct Complaint: Error, Equatable {
    /// `unreachable`, `noPrice`, `tooOld`, `unconfirmed`, `uncertain`, `tooCoarse`, `timedOut`, `busy`, `permissionDenied`, `usage`, `internal`
    let word: String
    /// What is wrong. Without control characters, which may be the daemon's or the command line's.
    let problem: String
    /// What to do; empty if that is not known, or if ``problem`` says it.
    let advice: String
    let status: Int32
    /// Why the daemon can't be reached, as far as that is known.
    enum Reach {
        /// None listens where one was looked for.
        case absent
        /// This user may not use its socket.
        case forbidden
        /// It does not respond.
        case silent
    }
    private(set) var reach: Reach?

    init(word: String, message: String, advice: String = "", status: Int32) {
        self.word = word
        (problem, self.advice) = (message.printable, advice)
        self.status = status
    }

    var message: String { advice.isEmpty ? problem : "\(problem) \(advice)" }

    /// Why no newer price comes, for a view that waits for one.
    var reason: String {
        word == "unreachable" ? "Reason: btc-priced can't be reached; waiting for it." : "Reason: \(message)"
    }

    /// An error of a call.
    init(_ error: ClientError) {
        self =
            switch error {
            case .unreachable, .timedOut, .closed, .interrupted: .unreachable([error])
            case .refused(PriceInterface.fetchFailed, let reason?): .noPrice(reason)
            case .refused("\(ServiceInterface.name).PermissionDenied", _): .permissionDenied
            case .refused(PriceInterface.busy, _): .busy
            case .refused(PriceInterface.tooManyConnections, let limit): .tooManyConnections(limit)
            case .refused(PriceInterface.unknownSource, let reason): .unknownSource(reason)
            case .refused(PriceInterface.unknownCurrency, let reason),
                .refused(HistoryInterface.unknownCurrency, let reason):
                .unknownCurrency(reason)
            case .refused(HistoryInterface.disabled, _): .noHistory
            case .refused(HistoryInterface.unavailable, let reason): .historyUnavailable(reason)
            // A parameter, a method or an interface that an older daemon does not know.
            case .refused("\(ServiceInterface.name).InvalidParameter", _),
                .refused("\(ServiceInterface.name).MethodNotFound", _),
                .refused("\(ServiceInterface.name).InterfaceNotFound", _):
                .tooOldDaemon
            case .refused("\(ServiceInterface.name).MethodNotImplemented", _):
                Complaint(
                    word: "internal", message: "The program at this socket can't do that: it only follows a publisher.",
                    status: ExitStatus.unreachable)
            case .refused, .unintelligible:
                Complaint(word: "internal", message: "\(error)", status: ExitStatus.unreachable)
            }
    }

    /// - Parameter skipped: Why another place was not tried.
    static func unreachable(_ tried: [ClientError], skipped: String? = nil) -> Complaint {
        let reasons = (tried.map(\.description) + [skipped].compactMap(\.self)).joined(separator: "; ")
        let (advice, reach) = advice(tried)
        var complaint = Complaint(
            word: "unreachable", message: "btc-priced can't be reached (\(reasons)).", advice: advice,
            status: ExitStatus.unreachable)
        complaint.reach = reach
        return complaint
    }

    /// The advice for the attempt that came closest to a response.
    private static func advice(_ tried: [ClientError]) -> (String, Reach?) {
        var (isForbidden, isAbsent) = (false, false)
        for error in tried {
            switch error {
            case .closed: return ("It closed the connection: 'systemctl status btc-priced' says why.", .silent)
            case .timedOut:
                return (
                    "The daemon is running but does not respond. If this lasts, run 'systemctl restart btc-priced'.",
                    .silent
                )
            case .unreachable(_, String(cString: strerror(EACCES))): isForbidden = true
            case .unreachable(_, String(cString: strerror(ENOENT))),
                .unreachable(_, String(cString: strerror(ECONNREFUSED))):
                isAbsent = true
            default: break
            }
        }
        if isForbidden {
            return ("This user may not use that socket: see the permissions of its directories.", .forbidden)
        }
        // Any other reason is this program's, such as too many open files.
        return isAbsent
            ? ("Start it with 'systemctl start btc-priced', or name its socket with --socket.", .absent) : ("", nil)
    }

    /// There is no price yet, or no source returned one.
    static func noPrice(_ failure: String?) -> Complaint {
        Complaint(
            word: "noPrice",
            message: [PriceTexts.failed, failure.map(whole)].compactMap(\.self).joined(separator: " "),
            status: ExitStatus.noPrice)
    }

    /// Why there is no price, with what ends a pause.
    private static func whole(_ failure: String) -> String {
        failure == PriceState.pausedFailure ? "\(failure). \(PriceTexts.pause(nil))" : failure
    }

    /// - Parameter old: What the daemon has said.
    static func tooOld(_ old: PriceTooOld) -> Complaint {
        var message =
            "The age of the price is not known: it may be from before the last boot, and no tick has succeeded since."
        if let age = old.age {
            let milliseconds = age.wholeMilliseconds
            // Below ten seconds, the whole ones alone could seem to contradict it.
            let seconds = milliseconds < 10_000 ? "\(Price(milliseconds, scale: 3))" : "\(milliseconds / 1000)"
            message = "The price is \(seconds) s old, older than allowed."
        }
        if let reason = old.reason {
            message += " " + (reason == PriceState.pausedFailure ? PriceTexts.pause(.paused) : "Reason: \(reason)")
        }
        return Complaint(word: "tooOld", message: message, status: ExitStatus.tooOld)
    }

    /// The price is not as the command line requires.
    init(_ refusal: PriceRequirements.Refusal, _ state: PriceState) {
        let warning = refusal == .unconfirmed ? state.standing.warning.map { ": \($0)" } : nil
        self.init(
            word: refusal.word,
            message: "No price is printed: the price in \(state.currency) \(refusal.predicate)\(warning ?? "").",
            status: ExitStatus.tooOld)
    }

    /// - Parameters:
    ///   - state: The present state of the currency; `nil` if it is not known.
    ///   - note: How much of the time is known; `nil` for nothing.
    static func nothingKnown(in state: PriceState?, note: String? = nil) -> Complaint {
        let isDerived = state?.derivation != nil
        return Complaint(
            word: "noPrice",
            message: isDerived
                ? "No price is recorded: the price in \(state?.currency ?? "") is derived, and no price or no reference rate of that time is known."
                : note ?? "No price is recorded for that time.",
            status: ExitStatus.noPrice)
    }

    /// - Parameter range: The prices that are known, such as `day: $71,561.40 to $72,666.78`.
    static func tooCoarse(_ range: String, canFetch: Bool) -> Complaint {
        Complaint(
            word: "tooCoarse",
            message: "Less is known than --max-step asks for, only the \(range)."
                + (canFetch ? " With --fetch, an exchange is asked for the minute." : ""),
            status: ExitStatus.tooOld)
    }

    static let noHistory = Complaint(
        word: "noPrice",
        message: "No history is kept: history.enabled is false (btc-priced.toml(5)), or the socket is a publisher's.",
        status: ExitStatus.noPrice)

    static func historyUnavailable(_ reason: String?) -> Complaint {
        Complaint(
            word: "noPrice", message: "The history can't be read: \(reason ?? "no reason is known").",
            status: ExitStatus.noPrice)
    }

    static func timedOut(_ timeout: Duration, what: String, _ reason: String) -> Complaint {
        Complaint(
            word: "timedOut", message: "\(what) within \(Table.text(timeout)): \(whole(reason))",
            status: ExitStatus.tooOld)
    }

    static let permissionDenied = Complaint(
        word: "permissionDenied",
        message:
            "Only root, the daemon's own user and the group \(Product.group) may do that: use sudo, or add a user with "
            + "'usermod -aG \(Product.group) USER' (it counts from the next login).",
        status: ExitStatus.notPermitted)

    /// - Parameter reason: Names the source, and those that can be retried or switched.
    static func unknownSource(_ reason: String?) -> Complaint {
        Complaint(
            word: "usage", message: "\(reason ?? "This source can't be retried or switched"). See 'btcctl sources'.",
            status: ExitStatus.usage)
    }

    static func switchedOff(_ source: String) -> Complaint {
        Complaint(
            word: "usage", message: "\(source) is switched off: 'btcctl source \(source) on' switches it on.",
            status: ExitStatus.usage)
    }

    /// - Parameter reason: Names the currency that is not kept and those that are.
    static func unknownCurrency(_ reason: String?) -> Complaint {
        Complaint(
            word: "usage",
            message:
                "The price is not kept in \(reason ?? "that currency"). See the key currencies in btc-priced.toml(5).",
            status: ExitStatus.usage)
    }

    static let busy = Complaint(
        word: "busy",
        message: "The daemon has too many pending calls. Try again later.",
        status: ExitStatus.tooOld)

    /// - Parameter limit: The limit and its value.
    static func tooManyConnections(_ limit: String?) -> Complaint {
        Complaint(
            word: "busy",
            message: "The daemon has too many connections\(limit.map { " (\($0))" } ?? ""). Try again later.",
            status: ExitStatus.tooOld)
    }

    static let tooOldDaemon = Complaint(
        word: "internal",
        message: "The daemon is older than this btcctl and does not know this call. Restart the daemon.",
        status: ExitStatus.unreachable)

    static func unwritable(_ path: String, _ reason: String) -> Complaint {
        Complaint(word: "internal", message: "\(path) can't be written: \(reason).", status: ExitStatus.outputFailed)
    }
}
