// SPDX-License-Identifier: Apache-2.0
// What the bundler takes besides TypeScript.
declare module "*.css";
