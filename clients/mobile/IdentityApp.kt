// Android: opens the identity app for a verification that your backend has opened.

package sakshi.mobile

import android.app.Activity
import android.app.ActivityManager
import android.content.ActivityNotFoundException
import android.content.Context
import android.content.Intent
import java.io.IOException
import java.net.HttpURLConnection
import java.net.URL
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.delay
import kotlinx.coroutines.withContext

/** @param uri `nationalIdAppUri` of the answer to `init`. */
class IdentityApp(private val uri: String) {
    private val intent: Intent
        // What an intent names is used, and nothing else that a URI can carry: no component of ours, no grants.
        get() = Intent.parseUri(uri, Intent.URI_INTENT_SCHEME).apply {
            component = null
            selector = null
            flags = flags and (Intent.FLAG_GRANT_READ_URI_PERMISSION or Intent.FLAG_GRANT_WRITE_URI_PERMISSION).inv()
        }

    /** Whether an app takes the intent. From Android 11 the manifest must list its action under `<queries>`. */
    fun isInstalled(context: Context): Boolean = intent.resolveActivity(context.packageManager) != null

    /** Opens the app; false when there is none: offer its page in the store. */
    fun launch(activity: Activity): Boolean = try {
        activity.startActivity(intent)
        true
    } catch (e: ActivityNotFoundException) {
        false
    }
}

/** How your backend tells that a verification ended. */
enum class Outcome { PENDING, PASSED, FAILED, EXPIRED }

/**
 * Asks your backend while your app is in the foreground, until there is an outcome. `status` is an address of your backend that answers
 * with one of the words of [Outcome]. It ends with the coroutine that calls it.
 */
suspend fun awaitOutcome(status: URL): Outcome {
    while (true) {
        if (isInForeground()) {
            val outcome = try { ask(status) } catch (e: IOException) { Outcome.PENDING }
            if (outcome != Outcome.PENDING) return outcome
        }
        delay(2_000)
    }
}

private fun isInForeground(): Boolean {
    val process = ActivityManager.RunningAppProcessInfo()
    ActivityManager.getMyMemoryState(process)
    return process.importance == ActivityManager.RunningAppProcessInfo.IMPORTANCE_FOREGROUND
}

private suspend fun ask(status: URL): Outcome = withContext(Dispatchers.IO) {
    val connection = status.openConnection() as HttpURLConnection
    connection.connectTimeout = 10_000
    connection.readTimeout = 40_000
    try {
        val word = connection.inputStream.bufferedReader().readText().trim()
        Outcome.values().firstOrNull { it.name.equals(word, ignoreCase = true) } ?: Outcome.PENDING
    } finally {
        connection.disconnect()
    }
}
