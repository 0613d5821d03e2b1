"use strict";
// Tables are sorted by a click on the head of a column. Figures show values under the pointer, where they are tapped, or
// with the arrow keys; they zoom to what is dragged over (a double click goes back). Without scripts the page shows the
// same, as it is printed.
(() => {
  const numberOf = (text) => {
    const inverse = text.match(/^1\/([\d.]+)/);
    if (inverse) return 1 / Number(inverse[1]);
    const found = text.replaceAll(",", "").match(/^-?\d+(\.\d+)?/);
    return found ? Number(found[0]) : NaN;
  };

  const sortBy = (table, column, head) => {
    const down = head.ariaSort === "ascending";
    for (const other of table.tHead.rows[0].cells) other.ariaSort = "none";
    head.ariaSort = down ? "descending" : "ascending";
    const key = (row) => row.cells[column].textContent.trim();
    const order = (a, b) => {
      const [x, y] = [numberOf(key(a)), numberOf(key(b))];
      if (Number.isNaN(x) && Number.isNaN(y)) return key(a).localeCompare(key(b)) * (down ? -1 : 1);
      if (Number.isNaN(x) || Number.isNaN(y)) return Number.isNaN(x) ? 1 : -1; // rows without a number come last
      return (x - y) * (down ? -1 : 1);
    };
    table.tBodies[0].append(...[...table.tBodies[0].rows].sort(order));
  };

  // Folded groups are printed; folded runs are not.
  addEventListener("beforeprint", () => {
    for (const group of document.querySelectorAll("details.group")) group.open = true;
  });

  for (const table of document.querySelectorAll("table")) {
    if (!table.tHead || table.tBodies[0].rows.length < 2) continue;
    [...table.tHead.rows[0].cells].forEach((head, column) => {
      if (head.tagName !== "TH") return;
      const button = document.createElement("button");
      button.type = "button";
      button.title = "sort by this column";
      button.append(...head.childNodes);
      head.append(button);
      head.addEventListener("click", () => sortBy(table, column, head));
    });
  }

  // Only areas that scroll can be reached with the tab key.
  const areas = new ResizeObserver((entries) => {
    for (const { target } of entries) target.tabIndex = target.scrollWidth > target.clientWidth ? 0 : -1;
  });
  for (const area of document.querySelectorAll(".scroll, pre")) areas.observe(area);

  const shown = (value) => {
    if (value === 0) return "0";
    const text = Math.abs(value) >= 1000 ? Math.round(value).toLocaleString("en-US") : value.toPrecision(4);
    return text.includes(".") && !text.includes("e") ? text.replace(/\.?0+$/, "") : text;
  };

  // A place between two edges as a value of an axis, and back.
  const valueAt = ([low, high, isLog], share) =>
    isLog ? low * (high / low) ** share : low + (high - low) * share;
  const shareOf = ([low, high, isLog], value) =>
    isLog ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low);

  const ticks = ([low, high, isLog]) => {
    if (isLog && high > 8 * low) {
      const found = [];
      for (let decade = 10 ** Math.floor(Math.log10(low)); decade <= high; decade *= 10)
        for (const times of high > 300 * low ? [1] : [1, 2, 5]) found.push(decade * times);
      return found.filter((value) => value >= low && value <= high);
    }
    const rough = (high - low) / 5;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((times) => times * power).find((size) => size >= rough);
    const first = Math.ceil(low / step) * step;
    return [...Array(12).keys()].map((n) => first + n * step).filter((value) => value <= high * (1 + 1e-12));
  };

  const make = (parent, name, attributes, text) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    if (text !== undefined) element.textContent = text;
    parent.append(element);
    return element;
  };

  const MOST_TOGETHER = 3;
  const NEAR = 0.03; // of the width of a panel: how far a marker may be from the place whose values are shown

  // The points of a path: pairs of numbers, and null before each new piece.
  const pointsOf = (path) => {
    const found = [];
    for (const [, command, x, y] of path.getAttribute("d").matchAll(/([ML])\s*([-\d.e]+)[\s,]+([-\d.e]+)/g)) {
      if (command === "M") found.push(null);
      found.push([Number(x), Number(y)]);
    }
    return found;
  };

  class Panel {
    constructor(svg, axes) {
      Object.assign(this, axes);
      this.svg = svg;
      this.group = svg.querySelector(`[id="${axes.id}"]`);
      this.lines = axes.lines
        .map(([id, label, goesOn]) => ({ label, goesOn, path: svg.querySelector(`[id="${id}"] path`) }))
        .filter((line) => line.path)
        .map((line) => ({ ...line, points: pointsOf(line.path), drawn: line.path.getAttribute("d") }));
      this.added = make(svg, "g", {});
      this.reset();
    }

    reset() {
      this.window = [...this.box]; // the visible part of the SVG as it was drawn
      for (const line of this.lines) line.path.setAttribute("d", line.drawn);
      this.showTicks(true);
      this.added.replaceChildren();
    }

    showTicks(visible) {
      for (const tick of this.group.querySelectorAll('[id^="xtick_"], [id^="ytick_"]'))
        tick.style.display = visible ? "" : "none";
    }

    holds(x, y) {
      const [left, top, right, bottom] = this.box;
      return x >= left && x <= right && y >= top && y <= bottom;
    }

    // A place on the screen as a place in the SVG as it was drawn, and back.
    before(x, y) {
      const [[left, top, right, bottom], [l, t, r, b]] = [this.box, this.window];
      return [l + ((x - left) / (right - left)) * (r - l), t + ((y - top) / (bottom - top)) * (b - t)];
    }

    after(x, y) {
      const [[left, top, right, bottom], [l, t, r, b]] = [this.box, this.window];
      return [left + ((x - l) / (r - l)) * (right - left), top + ((y - t) / (b - t)) * (bottom - top)];
    }

    zoom(left, top, right, bottom) {
      [left, top] = this.before(left, top);
      [right, bottom] = this.before(right, bottom);
      this.window = [left, top, right, bottom];
      for (const line of this.lines) {
        let next = "L";
        const words = [];
        for (const point of line.points) {
          if (point) words.push(next, ...this.after(...point).map((edge) => edge.toFixed(3)));
          next = point ? "L" : "M";
        }
        line.path.setAttribute("d", words.join(" "));
      }
      this.showTicks(false);
      this.drawTicks();
    }

    range(which) {
      const [low, high] = which === "x" ? [0, 2] : [3, 1];
      const along = which === "x" ? 0 : 1;
      const ends = which === "x" ? [this.box[0], this.box[2]] : [this.box[3], this.box[1]];
      const share = (edge) => (edge - ends[0]) / (ends[1] - ends[0]);
      const values = [low, high].map((edge) => valueAt(this[which], share(this.window[edge])));
      return { limits: [...values, this[which][2]], along, ends };
    }

    drawTicks() {
      this.added.replaceChildren();
      const [left, top, right, bottom] = this.box;
      const text = { "font-size": this.font, fill: "#000" };
      for (const which of ["x", "y"]) {
        const { limits, ends } = this.range(which);
        for (const value of ticks(limits)) {
          const at = ends[0] + shareOf(limits, value) * (ends[1] - ends[0]);
          const line = which === "x" ? { x1: at, x2: at, y1: top, y2: bottom } : { x1: left, x2: right, y1: at, y2: at };
          make(this.added, "line", { ...line, stroke: "#999", "stroke-width": 0.4 });
          const place =
            which === "x"
              ? { x: at, y: bottom + this.font + 4, "text-anchor": "middle" }
              : { x: left - 6, y: at + this.font / 3, "text-anchor": "end" };
          make(this.added, "text", { ...text, ...place }, shown(value));
        }
      }
    }

    // Label and value of each line at an x; outside of its range the value it goes on with, or null.
    valuesAt(x) {
      const [at] = this.before(x, 0);
      const valueOf = (edge) => {
        const value = valueAt(this.y, (edge - this.box[3]) / (this.box[1] - this.box[3]));
        return Math.abs(value) < 1e-6 * Math.abs(this.y[1]) ? 0 : value; // places in an SVG are rounded
      };
      const found = [];
      for (const { label, goesOn, points } of this.lines) {
        if (!label) continue;
        let edge = null;
        for (let i = 1; i < points.length && edge === null; i++) {
          const [from, to] = [points[i - 1], points[i]];
          if (!from || !to || at < Math.min(from[0], to[0]) || at > Math.max(from[0], to[0])) continue;
          const part = to[0] === from[0] ? 1 : (at - from[0]) / (to[0] - from[0]);
          edge = from[1] + part * (to[1] - from[1]);
        }
        const all = points.filter((point) => point);
        if (edge === null && goesOn && all.length) edge = (at < all[0][0] ? all[0] : all.at(-1))[1];
        found.push([label, edge === null ? null : valueOf(edge)]);
      }
      const near = NEAR * (this.box[2] - this.box[0]);
      for (const [label, places] of this.points) {
        const nearest = places.reduce((one, other) => (Math.abs(other[0] - at) < Math.abs(one[0] - at) ? other : one));
        if (Math.abs(nearest[0] - at) <= near) found.push([label, valueOf(nearest[1])]);
      }
      const share = (at - this.box[0]) / (this.box[2] - this.box[0]);
      return { x: valueAt(this.x, share), values: found };
    }
  }

  for (const figure of document.querySelectorAll(".drawn[data-axes]")) {
    const svg = figure.querySelector("svg");
    const panels = JSON.parse(figure.dataset.axes).map((axes) => new Panel(svg, axes));
    const mark = make(svg, "g", {});
    const tip = document.createElement("div");
    tip.className = "tip";
    tip.setAttribute("role", "status");
    tip.hidden = true;
    figure.after(tip);
    figure.parentElement.style.position = "relative";
    let start = null;
    let shownAt = null; // the panel and the place of the values that are shown

    const place = (event) => {
      const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
      return [point.x, point.y];
    };
    const panelAt = (x, y) => panels.find((panel) => panel.holds(x, y));
    const sameX = (panel) => (other) => JSON.stringify(other.x) === JSON.stringify(panel.x);
    const alike = (panel) => panels.filter(sameX(panel));
    // Few panels above and below each other with the same axis are read together.
    const column = (panel) => {
      const found = alike(panel).filter((other) => other.box[0] === panel.box[0] && other.box[2] === panel.box[2]);
      return found.length > MOST_TOGETHER ? [panel] : found;
    };

    const hide = () => {
      tip.hidden = true;
      shownAt = null;
      mark.replaceChildren();
    };

    const show = (panel, x) => {
      const [left, , right] = panel.box;
      const at = Math.min(Math.max(x, left), right);
      shownAt = { panel, x: at };
      mark.replaceChildren();
      tip.replaceChildren();
      const line = (text, look) => {
        const row = document.createElement("div");
        row.textContent = text;
        row.className = look;
        tip.append(row);
      };
      const together = column(panel);
      line(`${panel.name}: ${shown(panel.valuesAt(at).x)}`, "");
      for (const one of together) {
        const [, top, , bottom] = one.box;
        make(mark, "line", { x1: at, x2: at, y1: top, y2: bottom, stroke: "#888", "stroke-width": 0.6 });
        if (together.length > 1) line(one.title, "of");
        for (const [label, value] of one.valuesAt(at).values)
          line(`${label}: ${value === null ? "–" : shown(value)}`, "");
      }
      tip.hidden = false;
      const [frame, scale] = [figure.parentElement.getBoundingClientRect(), svg.getBoundingClientRect()];
      const size = svg.viewBox.baseVal;
      const [x0, width] = [scale.left - frame.left + (at / size.width) * scale.width, tip.offsetWidth];
      const beside = x0 + 12 + width <= frame.width ? x0 + 12 : x0 - 12 - width; // not over the place that is pointed at
      tip.style.left = `${Math.max(0, Math.min(beside, frame.width - width))}px`;
      tip.style.top = `${scale.top - frame.top + (together[0].box[1] / size.height) * scale.height}px`;
    };

    svg.addEventListener("pointerdown", (event) => {
      const [x, y] = place(event);
      const panel = panelAt(x, y);
      if (event.pointerType === "touch") return panel ? show(panel, x) : hide();
      if (panel?.zooms) {
        start = { panel, x, y };
        event.preventDefault(); // without this the text of the figure is selected
      }
    });

    svg.addEventListener("pointermove", (event) => {
      const [x, y] = place(event);
      const panel = start?.panel ?? panelAt(x, y);
      if (!panel) return event.pointerType === "touch" ? undefined : hide();
      show(panel, x);
      if (start) {
        const [a, b] = [Math.min(start.x, x), Math.min(start.y, y)];
        const size = { width: Math.abs(x - start.x), height: Math.abs(y - start.y) };
        make(mark, "rect", { x: a, y: b, ...size, fill: "#0072B2", "fill-opacity": 0.12 });
      }
    });

    svg.addEventListener("pointerup", (event) => {
      if (!start) return;
      const [{ panel }, [x, y]] = [start, place(event)];
      const [left, top, right, bottom] = panel.box;
      const within = (value, low, high) => Math.min(Math.max(value, low), high);
      const [xs, ys] = [
        [within(start.x, left, right), within(x, left, right)].sort((a, b) => a - b),
        [within(start.y, top, bottom), within(y, top, bottom)].sort((a, b) => a - b),
      ];
      start = null;
      hide();
      if (xs[1] - xs[0] < 4 || ys[1] - ys[0] < 4) return;
      for (const other of alike(panel)) {
        const [, t, , b] = other.box;
        if (other === panel) other.zoom(xs[0], ys[0], xs[1], ys[1]);
        else if (other.zooms) other.zoom(xs[0], t, xs[1], b);
      }
    });

    svg.addEventListener("pointerleave", (event) => {
      start = null;
      if (event.pointerType !== "touch") hide(); // tapped values stay until another place is tapped
    });
    document.addEventListener("pointerdown", (event) => {
      if (!figure.contains(event.target)) hide();
    });
    svg.addEventListener("dblclick", () => panels.forEach((panel) => panel.reset()));

    // Left and right move the place of the values, up and down go from panel to panel.
    figure.addEventListener("keydown", (event) => {
      const { panel, x } = shownAt ?? { panel: panels[0], x: (panels[0].box[0] + panels[0].box[2]) / 2 };
      const [left, , right] = panel.box;
      const step = (right - left) / (event.shiftKey ? 10 : 50);
      const next = (by) => panels[(panels.indexOf(panel) + by + panels.length) % panels.length];
      const share = (x - left) / (right - left);
      const across = (other) => other.box[0] + share * (other.box[2] - other.box[0]);
      const moves = {
        ArrowLeft: () => show(panel, shownAt ? x - step : x),
        ArrowRight: () => show(panel, shownAt ? x + step : x),
        Home: () => show(panel, left),
        End: () => show(panel, right),
        ArrowUp: () => show(next(-1), across(next(-1))),
        ArrowDown: () => show(next(1), across(next(1))),
        Escape: hide,
      };
      if (!moves[event.key]) return;
      event.preventDefault();
      moves[event.key]();
    });
    figure.addEventListener("blur", hide);
  }
})();
