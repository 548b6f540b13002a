// A real OpenID Connect provider on this machine: `node provider.mjs OPTIONS`, with JSON. Whoever
// shows a password is signed in; what the table below has is what the provider knows of them.
import { createRequire } from "node:module";
import crypto from "node:crypto";
import http from "node:http";
import https from "node:https";
import path from "node:path";
import { pathToFileURL } from "node:url";

const tools = path.join(process.env.TESSERA_PAGE_TOOLS, "node_modules/");
const require = createRequire(tools);
const { Provider } = await import(pathToFileURL(require.resolve("oidc-provider")).href);

const { port, redirect, secret, algorithm, conforms, tls } = JSON.parse(process.argv[2]);
const people = {
  ada: { groups: ["artists", "comp"] },
  bob: { groups: ["artists"] },
  tess: { groups: ["artists", "td"] },
  guest: { groups: ["comp", "<b>roto</b>"] },
  loner: {},
  admin: { groups: ["artists"] },
  taken: { groups: ["artists"] },
  mail: { groups: ["artists"], preferred_username: "Mary Ann", email_verified: true },
};

const kinds = {
  RS256: ["rsa", { modulusLength: 2048 }],
  ES256: ["ec", { namedCurve: "P-256" }],
  EdDSA: ["ed25519", {}],
};

function key(kid) {
  const { privateKey } = crypto.generateKeyPairSync(...kinds[algorithm]);
  return { ...privateKey.export({ format: "jwk" }), alg: algorithm, use: "sig", kid };
}

function published({ kty, crv, n, e, x, y, alg, use, kid }) {
  return { kty, crv, n, e, x, y, alg, use, kid };
}

const signing = key("first");
const issuer = `${tls ? "https" : "http"}://127.0.0.1:${port}`;
const provider = new Provider(issuer, {
  clients: [{
    client_id: "tessera",
    client_secret: secret ?? undefined,
    redirect_uris: [redirect],
    id_token_signed_response_alg: algorithm,
    token_endpoint_auth_method: secret ? "client_secret_basic" : "none",
  }],
  jwks: { keys: [signing] },
  cookies: { keys: [crypto.randomBytes(16).toString("hex")] },
  claims: {
    openid: ["sub"],
    profile: ["preferred_username"],
    email: ["email", "email_verified"],
    groups: ["groups"],
  },
  // Without it, the token has the claims; with it, only the endpoint for them does.
  conformIdTokenClaims: conforms,
  findAccount: (_, name) => ({
    accountId: name,
    claims: () => ({
      sub: name,
      preferred_username: name,
      email: `${name}@studio.example`,
      ...people[name],
    }),
  }),
});

// Tests have it show other keys than the one that it signs with, and put people into groups.
let shown = null;
provider.use(async (context, next) => {
  if (context.path.startsWith("/test/keys/")) {
    const kid = context.path.split("/").pop();
    shown = kid === "own" ? null : published(key(kid));
    context.body = "done";
    return;
  }
  if (context.path.startsWith("/test/groups/")) {
    const [name, groups] = context.path.split("/").slice(-2);
    people[name].groups = groups.split(",");
    context.body = "done";
    return;
  }
  await next();
  if (context.path === "/jwks" && shown) context.body = { keys: [shown] };
});

const answer = provider.callback();
const server = tls ? https.createServer(tls, answer) : http.createServer(answer);
server.listen(port, "127.0.0.1", () => process.stderr.write(`provider at ${issuer}\n`));
