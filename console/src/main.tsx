import "./styles/tokens.css";
import "./styles/base.css";
import "./styles/views.css";
import "./styles/fleet.css";
import "./styles/run.css";
import "./styles/stack.css";
import "./styles/servers.css";
import { render } from "preact";
import { App } from "./app";

render(<App />, document.getElementById("console")!);
