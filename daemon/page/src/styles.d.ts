// SPDX-License-Identifier: Apache-2.0
// Files besides TypeScript that the bundler accepts.
declare module "*.css";
