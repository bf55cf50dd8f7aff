package cache

import (
	"bytes"
	"errors"

	"google.golang.org/protobuf/encoding/protowire"
)

// Field numbers of the stored protobuf encoding, from the published .proto files of the API.
const (
	envelopeTypeMeta, envelopeRaw    = 1, 2
	typeMetaVersion, typeMetaKind    = 1, 2
	objectMetadata                   = 1
	metaName, metaNamespace, metaUID = 1, 3, 5
	metaCreation, metaDeletion       = 8, 9
	metaOwner, metaFinalizer         = 13, 14
	timeSeconds                      = 1
	ownerKind, ownerName, ownerUID   = 1, 3, 4
	ownerVersion, ownerIsController  = 5, 6
	ownerBlocks                      = 7
)

// protobufMagic opens every protobuf value that the API machinery stores.
var protobufMagic = []byte("k8s\x00")

var errWire = errors.New("not a stored protobuf object")

// eachField calls visit for every field of a message: length-delimited ones with their bytes, varints with their number.
func eachField(message []byte, visit func(number protowire.Number, data []byte, varint uint64) error) error {
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return errWire
		}
		message = message[n:]
		var data []byte
		var varint uint64
		switch kind {
		case protowire.BytesType:
			data, n = protowire.ConsumeBytes(message)
		case protowire.VarintType:
			varint, n = protowire.ConsumeVarint(message)
		default:
			n = protowire.ConsumeFieldValue(number, kind, message)
		}
		if n < 0 {
			return errWire
		}
		if err := visit(number, data, varint); err != nil {
			return err
		}
		message = message[n:]
	}
	return nil
}

// wireMeta reads the few metadata fields that indexes need without decoding the object around them.
func wireMeta(value []byte, into *Meta) error {
	return eachField(value[len(protobufMagic):], func(number protowire.Number, data []byte, _ uint64) error {
		switch number {
		case envelopeTypeMeta:
			return wireTypeMeta(data, into)
		case envelopeRaw:
			return wireObject(data, into)
		}
		return nil
	})
}

func wireTypeMeta(data []byte, into *Meta) error {
	return eachField(data, func(number protowire.Number, data []byte, _ uint64) error {
		switch number {
		case typeMetaVersion:
			into.APIVersion = intern(data)
		case typeMetaKind:
			into.Kind = intern(data)
		}
		return nil
	})
}

// errFound ends the walk of an object after its metadata, which comes first.
var errFound = errors.New("metadata found")

func wireObject(data []byte, into *Meta) error {
	err := eachField(data, func(number protowire.Number, data []byte, _ uint64) error {
		if number != objectMetadata {
			return nil
		}
		if err := wireObjectMeta(data, into); err != nil {
			return err
		}
		return errFound
	})
	if errors.Is(err, errFound) {
		return nil
	}
	return err
}

func wireObjectMeta(data []byte, into *Meta) error {
	return eachField(data, func(number protowire.Number, data []byte, _ uint64) error {
		switch number {
		case metaName:
			into.Name = string(data)
		case metaNamespace:
			into.Namespace = intern(data)
		case metaUID:
			into.UID = uid(data)
		case metaCreation:
			return wireTime(data, &into.Created)
		case metaDeletion:
			into.Deleting = true
		case metaFinalizer:
			into.Finalizers = append(into.Finalizers, intern(data))
		case metaOwner:
			return wireOwner(data, into)
		}
		return nil
	})
}

func wireTime(data []byte, seconds *int64) error {
	return eachField(data, func(number protowire.Number, _ []byte, varint uint64) error {
		if number == timeSeconds {
			*seconds = int64(varint)
		}
		return nil
	})
}

func wireOwner(data []byte, into *Meta) error {
	var owner Owner
	err := eachField(data, func(number protowire.Number, data []byte, varint uint64) error {
		switch number {
		case ownerKind:
			owner.Kind = intern(data)
		case ownerName:
			owner.Name = string(data)
		case ownerUID:
			owner.UID = uid(data)
		case ownerVersion:
			owner.APIVersion = intern(data)
		case ownerIsController:
			owner.Controller = varint != 0
		case ownerBlocks:
			owner.Blocks = varint != 0
		}
		return nil
	})
	into.Owners = append(into.Owners, owner)
	return err
}

func isProtobuf(value []byte) bool { return bytes.HasPrefix(value, protobufMagic) }
