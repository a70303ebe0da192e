// The parts of Vega that the panel's charts use, in the place of the package: that holds maps, forces, trees and word
// clouds too, a seventh of the bundle. vega-lite asks it for four functions.
import { transforms } from 'vega-dataflow';
import * as encode from 'vega-encode';
import * as basic from 'vega-transforms';
import * as marks from 'vega-view-transforms';

Object.assign(transforms, basic, marks, encode);

export { parse } from 'vega-parser';
export { hasOwnProperty, isObject, isString, stringValue } from 'vega-util';
export { View } from 'vega-view';
