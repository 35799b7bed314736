// iOS: opens the identity app for a verification that your backend has opened.

import Foundation
import UIKit

public enum Outcome: String {
    case pending, passed, failed, expired
}

@MainActor
public struct IdentityApp {
    private let url: URL

    /// `iosAppUri` of the answer to `init`; nil if it is no URL.
    public init?(uri: String) {
        guard let url = URL(string: uri) else { return nil }
        self.url = url
    }

    /// Whether the app is there. A custom scheme must be listed under `LSApplicationQueriesSchemes`.
    public var isInstalled: Bool {
        UIApplication.shared.canOpenURL(url)
    }

    /// Opens the app; false when it is not installed: offer its page in the store.
    public func launch() async -> Bool {
        let options: [UIApplication.OpenExternalURLOptionsKey: Any] = url.scheme == "https" ? [.universalLinksOnly: true] : [:]
        return await UIApplication.shared.open(url, options: options)
    }
}

/// Asks your backend while your app is active, until there is an outcome. `status` is an address of your backend that answers with one of
/// the words of `Outcome`. It ends with the task that calls it.
@MainActor
public func awaitOutcome(status: URL) async throws -> Outcome {
    var request = URLRequest(url: status, cachePolicy: .reloadIgnoringLocalCacheData, timeoutInterval: 40)
    request.setValue("text/plain", forHTTPHeaderField: "Accept")
    while true {
        try Task.checkCancellation()
        if UIApplication.shared.applicationState == .active,
           let (body, _) = try? await URLSession.shared.data(for: request),
           let word = String(data: body, encoding: .utf8)?.trimmingCharacters(in: .whitespacesAndNewlines),
           let outcome = Outcome(rawValue: word), outcome != .pending {
            return outcome
        }
        try await Task.sleep(nanoseconds: 2_000_000_000)
    }
}
