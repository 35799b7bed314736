// A network between pages and a service, which a test can cut. Chromium's own emulation refuses new requests, but leaves an open
// stream as it is.

import { once } from "node:events";
import { connect, createServer } from "node:net";

export class Network {
  // Starts a network that leads to the service.
  static async to({ base }) {
    const network = new Network();
    const { hostname: host, port } = new URL(base);
    network.ends = new Set();
    network.server = createServer((near) => {
      if (network.isCut) return near.destroy();
      const far = connect({ host, port });
      for (const [end, other] of [[near, far], [far, near]]) {
        network.ends.add(end);
        end.on("error", () => {}).on("close", () => { network.ends.delete(end); other.destroy(); });
        end.pipe(other);
      }
    }).listen(0, "127.0.0.1");
    await once(network.server, "listening");
    network.base = `http://127.0.0.1:${network.server.address().port}`;
    return network;
  }

  // Returns the address of one of the service's pages over this network.
  at(url) {
    const { pathname, search } = new URL(url);
    return `${this.base}${pathname}${search}`;
  }

  async cut(page) {
    this.isCut = true;
    await page.context().setOffline(true);
    for (const end of this.ends) end.destroy();
  }

  async mend(page) {
    this.isCut = false;
    await page.context().setOffline(false);
  }

  stop() {
    this.server.close();
    for (const end of this.ends) end.destroy();
  }
}
