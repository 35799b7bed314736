// React Native: opens the identity app for a verification that your backend has opened.

import { AppState, Linking, NativeModules, Platform } from "react-native";

export type Outcome = "pending" | "passed" | "failed" | "expired";
/** Of the answer to `init`. */
export type AppUris = { nationalIdAppUri?: string; iosAppUri?: string };

/** Whether the app is there. On iOS a custom scheme must be listed under `LSApplicationQueriesSchemes`. */
export async function isInstalled({ nationalIdAppUri, iosAppUri }: AppUris): Promise<boolean> {
  if (Platform.OS === "android") return nationalIdAppUri !== undefined && NativeModules.IdentityApp.isInstalled(nationalIdAppUri);
  return iosAppUri !== undefined && Linking.canOpenURL(iosAppUri);
}

/** Opens the app; false when it is not installed: offer its page in the store. */
export async function launch({ nationalIdAppUri, iosAppUri }: AppUris): Promise<boolean> {
  try {
    if (Platform.OS === "android") return nationalIdAppUri !== undefined && (await NativeModules.IdentityApp.launch(nationalIdAppUri));
    if (iosAppUri === undefined) return false;
    await Linking.openURL(iosAppUri);
    return true;
  } catch {
    return false;
  }
}

/** Asks your backend while your app is active, until there is an outcome. Aborting `signal` ends it within two seconds. */
export async function awaitOutcome(status: string, signal?: AbortSignal): Promise<Outcome> {
  const options = { headers: { "Cache-Control": "no-cache" }, ...(signal ? { signal } : {}) };
  for (;;) {
    // The AbortSignal of older versions has no throwIfAborted.
    if (signal?.aborted) throw Object.assign(new Error("aborted"), { name: "AbortError" });
    if (AppState.currentState === "active") {
      const word = await fetch(status, options).then((answer) => answer.text()).then((text) => text.trim(), () => "pending");
      if (word === "passed" || word === "failed" || word === "expired") return word;
    }
    await new Promise<void>((resolve) => setTimeout(resolve, 2_000));
  }
}
