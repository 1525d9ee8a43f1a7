// Loaded between require.js and html-manager's embed-amd.js on every page with widgets.

// 1. Modules and icon fonts resolve beside this file, so that a page asks no other server for anything.
(function () {
  "use strict";
  var here = document.currentScript.src.replace(/[^/]*$/, "");
  window.__jupyter_widgets_assets_path__ = here + "@jupyter-widgets/html-manager/dist/";
  window.requirejs.config({ baseUrl: here });
})();

// 2. html-manager hands the text of widgets to version 2 of MathJax; the page has version 3. Pass it on.
(function () {
  "use strict";
  var mathjax = window.MathJax;
  var hub = {
    Queue: function (task) {
      var element = task[2];
      if (!/\\[(\[]/.test(element.textContent)) return; // no formula in it
      function typeset() {
        if (mathjax && mathjax.startup && mathjax.startup.promise) {
          mathjax.startup.promise.then(function () {
            return mathjax.typesetPromise([element]);
          });
        }
      }
      if (document.readyState === "complete") typeset();
      else window.addEventListener("load", typeset);
    },
  };
  // MathJax replaces its settings by itself when it has loaded, which may be before or after this line.
  function withHub(value) {
    if (value) value.Hub = hub;
    return value;
  }
  withHub(mathjax);
  Object.defineProperty(window, "MathJax", {
    configurable: true,
    enumerable: true,
    get: function () {
      return mathjax;
    },
    set: function (value) {
      mathjax = withHub(value);
    },
  });
})();

// 3. Controls get the names and values that assistive technology reads out: ipywidgets leaves both to the eye.
(function () {
  "use strict";

  function set(element, name, value) {
    // Writing an equal value would wake the observer again, without end.
    if (value && element.getAttribute(name) !== value) element.setAttribute(name, value);
  }

  function textOf(element) {
    return element ? element.textContent.trim() : "";
  }

  // The visible label of a control, or its tooltip.
  function nameOf(control) {
    var box = control.closest(".widget-inline-hbox, .widget-inline-vbox, .jupyter-widgets");
    return textOf(box && box.querySelector(".widget-label")) || control.getAttribute("title") || "";
  }

  function slider(handle) {
    var box = handle.closest(".widget-inline-hbox, .widget-inline-vbox");
    var readout = box && box.querySelector(".widget-readout");
    var name = nameOf(handle) || "Value";
    var handles = box ? box.querySelectorAll('[role="slider"]') : [];
    if (handles.length === 2) name += handle === handles[0] ? ", lower end" : ", upper end";
    set(handle, "aria-label", name);
    // The slider knows positions only; the readout shows what they mean.
    set(handle, "aria-valuetext", textOf(readout));
    if (readout && readout.isContentEditable) {
      set(readout, "role", "textbox");
      set(readout, "aria-label", (nameOf(handle) || "Value") + ", exact");
    }
  }

  function group(buttons) {
    set(buttons, "role", "group");
    set(buttons, "aria-label", nameOf(buttons) || "Choices");
    buttons.querySelectorAll("button").forEach(function (button) {
      set(button, "aria-pressed", String(button.classList.contains("mod-active")));
    });
  }

  function update() {
    document.querySelectorAll('.jupyter-widgets [role="slider"]').forEach(slider);
    document.querySelectorAll(".widget-toggle-buttons").forEach(group);
    document.querySelectorAll(".jupyter-widgets select, .jupyter-widgets input").forEach(function (field) {
      if (!field.labels || !field.labels.length || !textOf(field.labels[0])) set(field, "aria-label", nameOf(field));
    });
    // Buttons that show an icon only, such as those of a player.
    document.querySelectorAll(".jupyter-widgets button").forEach(function (button) {
      var icon = button.querySelector('[class*="fa-"]');
      var shown = icon && /fa-([a-z]+)/.exec(icon.getAttribute("class"));
      if (shown && !textOf(button)) set(button, "aria-label", button.title || shown[1]);
    });
    // An output that scrolls sideways must be reachable with the keyboard.
    document.querySelectorAll(".widget-subarea, .widget-html-content").forEach(function (area) {
      if (area.scrollWidth > area.clientWidth + 1) set(area, "tabindex", "0");
    });
  }

  // Widgets draw themselves in many small steps: wait for a frame, then look once.
  var waiting = false;
  new MutationObserver(function () {
    if (waiting) return;
    waiting = true;
    window.requestAnimationFrame(function () {
      waiting = false;
      update();
    });
  }).observe(document.documentElement, {
    attributes: true,
    attributeFilter: ["aria-valuenow", "aria-valuetext", "class"],
    characterData: true,
    childList: true,
    subtree: true,
  });
})();
