"use strict";
// A shop that falls over: nothing catches what its check-out throws. The SDK
// sends it and ends the process, as it does in the programs of its users.
const Sentry = require("@sentry/node");

Sentry.init({ dsn: process.env.COMPAT_DSN, release: "shop@1.2.3", environment: "staging", autoSessionTracking: true });
Sentry.setUser({ id: "7", username: "ada" });
Sentry.setTag("page", "cart");
Sentry.addBreadcrumb({ category: "shop", message: "put a pear into the cart" });

function checkOut(cart) {
  return cart.items.length; // there is no cart
}

setTimeout(() => checkOut(undefined), 1);
