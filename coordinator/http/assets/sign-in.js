// Signs in with the code behind # in the link, which no server has seen until now.
const form = document.getElementById("sign-in");
const field = document.getElementById("code");
const problem = document.getElementById("problem");

async function signIn(code) {
  problem.hidden = true;
  const answer = await fetch("/api/v1/sign-in", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ code }),
  }).catch(() => null);
  if (answer?.ok) {
    location.replace("/jobs");
    return;
  }
  const said = await answer?.json().catch(() => null);
  problem.textContent = said?.detail ?? "The server does not answer.";
  problem.hidden = false;
  field.focus();
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  signIn(field.value.trim().replace(/^.*#/, ""));
});

const code = location.hash.slice(1);
if (code) {
  // The code is used up now; the address bar and the history need not keep it.
  history.replaceState(null, "", location.pathname);
  field.value = code;
  signIn(code);
}
