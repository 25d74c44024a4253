"""A page with a form; what is sent is written to /root/.form.json."""

import html
import json
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.parse import parse_qs

PAGE = """<!DOCTYPE html><title>Order</title><form method="post">
<p><label>Name <input name="name" autofocus></label>
<p><label>Town <input name="town"></label>
<p><button>Send</button></form>"""


class Form(BaseHTTPRequestHandler):
    def do_GET(self):
        self._say(PAGE)

    def do_POST(self):
        sent = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        with open("/root/.form.json", "w") as file:
            json.dump({name: values[0] for name, values in sent.items()}, file)
        self._say(f"<title>Thank you</title>Thank you, {html.escape(sent.get('name', ['stranger'])[0])}.")

    def _say(self, text):
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *arguments):
        pass


HTTPServer(("127.0.0.1", 8000), Form).serve_forever()
