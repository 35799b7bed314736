// React Native on Android: the module behind identityApp.ts.

package sakshi.mobile

import com.facebook.react.bridge.Promise
import com.facebook.react.bridge.ReactApplicationContext
import com.facebook.react.bridge.ReactContextBaseJavaModule
import com.facebook.react.bridge.ReactMethod

class IdentityAppModule(context: ReactApplicationContext) : ReactContextBaseJavaModule(context) {
    override fun getName() = "IdentityApp"

    @ReactMethod
    fun isInstalled(uri: String, promise: Promise) = promise.resolve(IdentityApp(uri).isInstalled(reactApplicationContext))

    @ReactMethod
    fun launch(uri: String, promise: Promise) {
        val activity = reactApplicationContext.currentActivity
        promise.resolve(activity != null && IdentityApp(uri).launch(activity))
    }
}
