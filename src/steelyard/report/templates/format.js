"use strict";
// A number as people read it: the rule of steelyard.format.number, held to it by tests/e2e/test_format_browser.py.
const shownNumber = (value, digits = 4, trim = null) => {
  if (value === null || value === undefined || !Number.isFinite(value)) return "\u2013";
  const size = Math.abs(value), exponent = size === 0 ? digits - 1 : Math.floor(Math.log10(size));
  const places = Math.max(0, Math.min(digits - 1 - exponent, 8));
  // Python rounds a tie to the even neighbour, toFixed away from 0.
  const scaled = size * 10 ** places, tie = scaled % 1 === 0.5 && scaled / 10 ** places === size && places < 4;
  let text = (tie && Math.floor(scaled) % 2 === 0 ? Math.floor(scaled) / 10 ** places : size).toFixed(places);
  if (places && (trim || (trim === null && Number.isInteger(value)))) text = text.replace(/\.?0+$/, "");
  const [whole, rest] = text.split(".");
  const grouped = whole.replace(/\B(?=(\d{3})+$)/g, ",");
  return (value < 0 ? "\u2212" : "") + grouped + (rest === undefined ? "" : `.${rest}`);
};
