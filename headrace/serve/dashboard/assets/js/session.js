/** Who is logged in. The cookie that proves it cannot be read by scripts. */

import { ApiError, getJson, postJson } from "./api.js";
import { decode } from "./router.js";

/** @type {{name: string, role: "admin" | "read" | "ingest", expires_us: number | null} | null} */
let current = null;

export const session = () => current;
export const isAdmin = () => current?.role === "admin";

/** Take the token out of the address that the engine printed, so that it is not bookmarked or shared. */
export const takeToken = () => {
  const match = /^#token=([^&]+)/.exec(location.hash);
  if (match === null) return null;
  history.replaceState(null, "", `${location.pathname}${location.search}#/overview`);
  return decode(match[1]);
};

/** Ask who is logged in; null: nobody. */
export const readSession = async () => {
  try {
    current = await getJson("/v1/session");
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 401) throw error;
    current = null;
  }
  return current;
};

export const logIn = async (token) => {
  current = await postJson("/v1/login", { token });
  return current;
};

/** Log out. What it throws but 401 says that the session is still open. */
export const logOut = async () => {
  try {
    await postJson("/v1/logout");
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 401) throw error;
  }
  current = null;
};
