"use strict";
// A program with an uncaught exception, which the SDK reports before it exits the
// process.
const Sentry = require("@sentry/node");

Sentry.init({ dsn: process.env.COMPAT_DSN, release: "shop@1.2.3", environment: "staging", autoSessionTracking: true });
Sentry.setUser({ id: "7", username: "ada" });
Sentry.setTag("page", "cart");
Sentry.addBreadcrumb({ category: "shop", message: "put a pear into the cart" });

function checkOut(cart) {
  return cart.items.length; // cart is undefined
}

setTimeout(() => checkOut(undefined), 1);
