import Logging

/// Every kind of line that the daemon logs, with its `MESSAGE_ID` (sd_journal_print(3)), which is stable and never reused.
enum JournalMessage: String, CaseIterable {
    case ready = "4f0b6ad6f2e54f6aa9b0d0d0c2f3a101"
    case stopped = "4f0b6ad6f2e54f6aa9b0d0d0c2f3a102"
    case startFailed = "4f0b6ad6f2e54f6aa9b0d0d0c2f3a103"
    case reloaded = "4f0b6ad6f2e54f6aa9b0d0d0c2f3a104"
    case reloadRefused = "4f0b6ad6f2e54f6aa9b0d0d0c2f3a105"
    case needsRestart = "4f0b6ad6f2e54f6aa9b0d0d0c2f3a106"
    case paused = "4f0b6ad6f2e54f6aa9b0d0d0c2f3a107"
    case resumed = "4f0b6ad6f2e54f6aa9b0d0d0c2f3a108"
    case idle = "4f0b6ad6f2e54f6aa9b0d0d0c2f3a109"
    case retried = "4f0b6ad6f2e54f6aa9b0d0d0c2f3a10b"
    case sourceOff = "4f0b6ad6f2e54f6aa9b0d0d0c2f3a10c"
    case sourceOn = "4f0b6ad6f2e54f6aa9b0d0d0c2f3a10d"
    case slept = "4f0b6ad6f2e54f6aa9b0d0d0c2f3a10a"
    case fresh = "4f0b6ad6f2e54f6aa9b0d0d0c2f3a111"
    case currentAgain = "4f0b6ad6f2e54f6aa9b0d0d0c2f3a112"
    case stale = "4f0b6ad6f2e54f6aa9b0d0d0c2f3a113"
    case contradicted = "4f0b6ad6f2e54f6aa9b0d0d0c2f3a114"
    case contradictionEnded = "4f0b6ad6f2e54f6aa9b0d0d0c2f3a115"
    case sourceFailed = "4f0b6ad6f2e54f6aa9b0d0d0c2f3a121"
    case sourceLimited = "4f0b6ad6f2e54f6aa9b0d0d0c2f3a122"
    case sourceRefused = "4f0b6ad6f2e54f6aa9b0d0d0c2f3a123"
    case sourceRecovered = "4f0b6ad6f2e54f6aa9b0d0d0c2f3a124"
    case sourceNeedsKey = "4f0b6ad6f2e54f6aa9b0d0d0c2f3a125"
    case sourceElsewhere = "4f0b6ad6f2e54f6aa9b0d0d0c2f3a126"
    case sourceSlow = "4f0b6ad6f2e54f6aa9b0d0d0c2f3a127"
    case sourceStillRests = "4f0b6ad6f2e54f6aa9b0d0d0c2f3a128"
    case streamRefused = "4f0b6ad6f2e54f6aa9b0d0d0c2f3a12d"
    case conversionImpossible = "4f0b6ad6f2e54f6aa9b0d0d0c2f3a12c"
    case quorumUnreachable = "4f0b6ad6f2e54f6aa9b0d0d0c2f3a12e"
    case limitShared = "4f0b6ad6f2e54f6aa9b0d0d0c2f3a12f"
    case sourceAhead = "4f0b6ad6f2e54f6aa9b0d0d0c2f3a130"
    case outliers = "4f0b6ad6f2e54f6aa9b0d0d0c2f3a129"
    case tetherOffPeg = "4f0b6ad6f2e54f6aa9b0d0d0c2f3a12a"
    case tetherBack = "4f0b6ad6f2e54f6aa9b0d0d0c2f3a12b"
    case clockWrong = "4f0b6ad6f2e54f6aa9b0d0d0c2f3a171"
    case clockRight = "4f0b6ad6f2e54f6aa9b0d0d0c2f3a172"
    case saveFailed = "4f0b6ad6f2e54f6aa9b0d0d0c2f3a131"
    case saveRecovered = "4f0b6ad6f2e54f6aa9b0d0d0c2f3a132"
    case keptDamaged = "4f0b6ad6f2e54f6aa9b0d0d0c2f3a133"
    case stateUnusable = "4f0b6ad6f2e54f6aa9b0d0d0c2f3a134"
    case clientLimit = "4f0b6ad6f2e54f6aa9b0d0d0c2f3a141"
    case acceptFailed = "4f0b6ad6f2e54f6aa9b0d0d0c2f3a143"
    case historyFailed = "4f0b6ad6f2e54f6aa9b0d0d0c2f3a151"
    case historyRecovered = "4f0b6ad6f2e54f6aa9b0d0d0c2f3a152"
    case historyDamaged = "4f0b6ad6f2e54f6aa9b0d0d0c2f3a153"
    case historyFilled = "4f0b6ad6f2e54f6aa9b0d0d0c2f3a154"
    case historyUnfilled = "4f0b6ad6f2e54f6aa9b0d0d0c2f3a155"
    case historySaved = "4f0b6ad6f2e54f6aa9b0d0d0c2f3a156"
    case historyNotSaved = "4f0b6ad6f2e54f6aa9b0d0d0c2f3a157"
    case currencyNeeded = "4f0b6ad6f2e54f6aa9b0d0d0c2f3a161"
    case derivedInstead = "4f0b6ad6f2e54f6aa9b0d0d0c2f3a162"
    case marketAgain = "4f0b6ad6f2e54f6aa9b0d0d0c2f3a163"
    case ratesFailed = "4f0b6ad6f2e54f6aa9b0d0d0c2f3a164"
    case ratesRecovered = "4f0b6ad6f2e54f6aa9b0d0d0c2f3a165"
    case ratesRefused = "4f0b6ad6f2e54f6aa9b0d0d0c2f3a166"

    var level: Logger.Level {
        switch self {
        case .ready, .stopped, .idle, .slept, .fresh, .sourceRecovered, .sourceSlow, .historyFilled: .info
        case .clockRight, .tetherBack, .contradictionEnded, .currencyNeeded, .marketAgain, .ratesRecovered: .notice
        case .reloaded, .needsRestart, .paused, .resumed, .retried, .sourceOff, .sourceOn, .currentAgain,
            .sourceNeedsKey, .sourceElsewhere,
            .sourceStillRests, .streamRefused, .saveRecovered, .historyRecovered, .historyUnfilled, .historySaved:
            .notice
        case .conversionImpossible, .quorumUnreachable, .limitShared, .stale, .sourceFailed, .sourceLimited,
            .sourceRefused, .sourceAhead,
            .contradicted, .clockWrong, .outliers, .derivedInstead, .ratesFailed, .ratesRefused,
            .historyNotSaved, .tetherOffPeg, .clientLimit:
            .warning
        case .reloadRefused, .saveFailed, .keptDamaged, .stateUnusable, .acceptFailed, .historyFailed, .historyDamaged:
            .error
        case .startFailed: .critical
        }
    }
}

extension Logger {
    /// Logs a line.
    /// - Parameter fields: Fields for programs: `source` becomes `BTC_SOURCE`.
    func tell(_ message: JournalMessage, _ text: String, _ fields: Logger.Metadata = [:]) {
        var fields = fields
        fields["MESSAGE_ID"] = "\(message.rawValue)"
        log(level: message.level, "\(text)", metadata: fields)
    }
}
