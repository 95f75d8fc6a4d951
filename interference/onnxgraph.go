package interference

import (
	"encoding/binary"
	"fmt"
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

// The part of the ONNX format (onnx.proto, IR version 8, operators of version
// 17) that the exported models need, written field by field.

const (
	onnxIR, onnxOpset           = 8, 17
	onnxFloat, onnxInt64        = 1, 7 // TensorProto.DataType
	attributeInt, attributeInts = 2, 7 // AttributeProto.AttributeType
	fieldModelIR                = 1    // ModelProto
	fieldModelProducer          = 2
	fieldModelGraph             = 7
	fieldModelOpset             = 8
	fieldGraphNode              = 1 // GraphProto
	fieldGraphName              = 2
	fieldGraphInitializer       = 5
	fieldGraphInput             = 11
	fieldGraphOutput            = 12
)

// onnxGraph is built node by node; every node's output is named after its
// place.
type onnxGraph struct {
	nodes, initializers, inputs, outputs []byte
	count                                int
}

func appendMessage(b []byte, field protowire.Number, message []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), message)
}

func appendText(b []byte, field protowire.Number, s string) []byte {
	return appendMessage(b, field, []byte(s))
}

func appendInt(b []byte, field protowire.Number, v int64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), uint64(v))
}

// attribute is an integer setting of a node, or a list of one integer.
type attribute struct {
	name  string
	value int64
	list  bool
}

// node adds an operation and returns the name of its output.
func (g *onnxGraph) node(op string, inputs []string, attributes ...attribute) string {
	g.count++
	name := fmt.Sprintf("%s_%d", op, g.count)
	g.named(op, name, inputs, attributes...)
	return name
}

// named adds an operation whose output has a name of its own.
func (g *onnxGraph) named(op, output string, inputs []string, attributes ...attribute) {
	var n []byte
	for _, in := range inputs {
		n = appendText(n, 1, in)
	}
	n = appendText(n, 2, output)
	n = appendText(n, 3, output)
	n = appendText(n, 4, op)
	for _, a := range attributes {
		field, kind := protowire.Number(3), int64(attributeInt)
		if a.list {
			field, kind = 8, attributeInts
		}
		n = appendMessage(n, 5, appendInt(appendInt(appendText(nil, 1, a.name), field, a.value), 20, kind))
	}
	g.nodes = appendMessage(g.nodes, fieldGraphNode, n)
}

// floats adds a constant and returns its name.
func (g *onnxGraph) floats(name string, values []float32, shape ...int) string {
	var raw []byte
	for _, v := range values {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(v))
	}
	return g.constant(name, onnxFloat, raw, shape)
}

func (g *onnxGraph) ints(name string, values []int64, shape ...int) string {
	var raw []byte
	for _, v := range values {
		raw = binary.LittleEndian.AppendUint64(raw, uint64(v))
	}
	return g.constant(name, onnxInt64, raw, shape)
}

func (g *onnxGraph) constant(name string, dtype int64, raw []byte, shape []int) string {
	var t []byte
	for _, n := range shape {
		t = appendInt(t, 1, int64(n))
	}
	t = appendInt(t, 2, dtype)
	t = appendText(t, 8, name)
	t = appendMessage(t, 9, raw)
	g.initializers = appendMessage(g.initializers, fieldGraphInitializer, t)
	return name
}

// value describes an input or output of shape (batch) or (batch, width).
func value(name string, dtype int64, width int) []byte {
	shape := appendMessage(nil, 1, appendText(nil, 2, "batch"))
	if width > 0 {
		shape = appendMessage(shape, 1, appendInt(nil, 1, int64(width)))
	}
	tensor := appendMessage(appendInt(nil, 1, dtype), 2, shape)
	return appendMessage(appendText(nil, 1, name), 2, appendMessage(nil, 1, tensor))
}

func (g *onnxGraph) input(name string, dtype int64, width int) string {
	g.inputs = appendMessage(g.inputs, fieldGraphInput, value(name, dtype, width))
	return name
}

func (g *onnxGraph) output(name string, width int) {
	g.outputs = appendMessage(g.outputs, fieldGraphOutput, value(name, onnxFloat, width))
}

// model is the whole file.
func (g *onnxGraph) model(name string) []byte {
	graph := append([]byte(nil), g.nodes...)
	graph = appendText(graph, fieldGraphName, name)
	graph = append(append(append(graph, g.initializers...), g.inputs...), g.outputs...)
	m := appendInt(nil, fieldModelIR, onnxIR)
	m = appendText(m, fieldModelProducer, "cotenant")
	m = appendMessage(m, fieldModelGraph, graph)
	return appendMessage(m, fieldModelOpset, appendInt(appendText(nil, 1, ""), 2, onnxOpset))
}
