"""A page of HTML with pictures in it: one file that needs no other."""

import base64
import html
import struct

STYLE = """
:root { color-scheme: light dark; --text: #1d1d1f; --soft: #6b6b70; --line: #d8d8dc; --back: #ffffff; }
@media (prefers-color-scheme: dark) { :root { --text: #e8e8ea; --soft: #a0a0a6; --line: #3c3c40; --back: #1b1b1d; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--text); background: var(--back); max-width: 72rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; margin-bottom: 0.2rem; } h2 { font-size: 1.2rem; margin: 2.2rem 0 0.4rem; }
p { color: var(--soft); margin: 0.2rem 0 0.6rem; max-width: 60rem; }
.wide { overflow-x: auto; } table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { text-align: right; min-width: 4rem; padding: 0.25rem 0.9rem 0.25rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
thead th { vertical-align: bottom; } th:first-child { text-align: left; font-weight: 500; color: var(--soft); white-space: nowrap; }
img { max-width: 100%; height: auto; background: #ffffff; border: 1px solid var(--line); border-radius: 6px; padding: 8px; box-sizing: border-box; }
pre { overflow-x: auto; border: 1px solid var(--line); border-radius: 6px; padding: 0.6rem; font-size: 13px; }
.wide th:first-child { position: sticky; left: 0; background: var(--back); }
@media (max-width: 40rem) {
  body { margin: 1rem auto; padding: 0 0.6rem; } th, td { padding-right: 0.6rem; }
  th:first-child { white-space: normal; min-width: 7.5rem; max-width: 11rem; padding-right: 0.6rem; }
}
.swatch { display: inline-block; width: 0.8em; height: 0.8em; border-radius: 2px; margin-right: 0.4em; }
"""


def table(heads, rows, colors=()):
    """A table whose first column names the rows; `heads` are the other columns' names, with the colour of each."""
    marks = [f'<span class="swatch" style="background:{color}"></span>' for color in colors] or [""] * len(heads)
    top = "".join(f"<th>{mark}{html.escape(head)}</th>" for mark, head in zip(marks, heads))
    body = "".join(
        "<tr><th>" + html.escape(name) + "</th>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in cells) + "</tr>\n"
        for name, cells in rows
    )
    return f'<div class="wide"><table><thead><tr><th></th>{top}</tr></thead><tbody>\n{body}</tbody></table></div>\n'


def picture(png, description):
    """A picture of 150 dots per inch. On a narrow screen it scrolls sideways: at half of its dots its text can still be read."""
    data, (columns,) = base64.b64encode(png).decode("ascii"), struct.unpack_from(">I", png, 16)
    image = f'<img alt="{html.escape(description)}" style="min-width:{columns // 2}px" src="data:image/png;base64,{data}">'
    return f'<div class="wide">{image}</div>\n'


def caption(text):
    return f"<p>{html.escape(text)}</p>\n"


def section(title, text, content):
    return f"<section><h2>{html.escape(title)}</h2>\n<p>{html.escape(text)}</p>\n{content}</section>\n"


def folded(title, text):
    return f"<details><summary>{html.escape(title)}</summary><pre>{html.escape(text)}</pre></details>\n"


def page(title, text, sections):
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">\n'
        f"<title>{html.escape(title)}</title><style>{STYLE}</style></head>\n"
        f"<body><h1>{html.escape(title)}</h1>\n<p>{html.escape(text)}</p>\n{''.join(sections)}</body></html>\n"
    )
