package signin

import (
	"crypto"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rsa"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	_ "crypto/sha1" // of OAEP, where it is not a signature
	_ "crypto/sha256"
	_ "crypto/sha512"

	"github.com/beevik/etree"
	dsig "github.com/russellhaering/goxmldsig"
)

// Algorithms of XML encryption. RSA with PKCS #1 v1.5 and Triple DES are not among
// them: they can be attacked.
const (
	nsEncryption   = "http://www.w3.org/2001/04/xmlenc#"
	nsEncryption11 = "http://www.w3.org/2009/xmlenc11#"

	cbc128 = nsEncryption + "aes128-cbc"
	cbc256 = nsEncryption + "aes256-cbc"
	gcm128 = nsEncryption11 + "aes128-gcm"
	gcm256 = nsEncryption11 + "aes256-gcm"
	oaep   = nsEncryption + "rsa-oaep-mgf1p"
	oaep11 = nsEncryption11 + "rsa-oaep"
)

// keySizes are the ciphers of content and the bytes of their keys.
var keySizes = map[string]int{
	cbc128: 16, nsEncryption + "aes192-cbc": 24, cbc256: 32,
	gcm128: 16, nsEncryption11 + "aes192-gcm": 24, gcm256: 32,
}

// errDecrypt is the error for everything that is wrong with encrypted content: details
// would help an attacker to guess it.
var errDecrypt = errors.New("the assertion cannot be decrypted")

// decrypt returns the content of an encrypted element.
func decrypt(key *rsa.PrivateKey, sealed *etree.Element) ([]byte, error) {
	data, err := child(sealed, nsEncryption, "EncryptedData")
	if err != nil || data == nil {
		return nil, errDecrypt
	}
	method := methodOf(data)
	size, ok := keySizes[method]
	if !ok {
		return nil, fmt.Errorf("the assertion is encrypted with %q, which is not accepted", clip(method))
	}
	wrapped, err := child(sealed, nsEncryption, "EncryptedKey")
	if err == nil && wrapped == nil {
		if info, _ := child(data, dsig.Namespace, dsig.KeyInfoTag); info != nil {
			wrapped, err = child(info, nsEncryption, "EncryptedKey")
		}
	}
	if err != nil || wrapped == nil {
		return nil, errDecrypt
	}
	options, err := oaepOptions(wrapped)
	if err != nil {
		return nil, err
	}
	content, err := key.Decrypt(nil, cipherText(wrapped), options)
	if err != nil || len(content) != size {
		return nil, errDecrypt
	}
	block, err := aes.NewCipher(content)
	if err != nil {
		return nil, errDecrypt
	}
	if strings.HasSuffix(method, "-gcm") {
		return openGCM(block, cipherText(data))
	}
	return openCBC(block, cipherText(data))
}

func openGCM(block cipher.Block, text []byte) ([]byte, error) {
	mode, err := cipher.NewGCM(block)
	if err != nil || len(text) < mode.NonceSize() {
		return nil, errDecrypt
	}
	plain, err := mode.Open(nil, text[:mode.NonceSize()], text[mode.NonceSize():], nil)
	if err != nil {
		return nil, errDecrypt
	}
	return plain, nil
}

func openCBC(block cipher.Block, text []byte) ([]byte, error) {
	size := block.BlockSize()
	if len(text) < 2*size || len(text)%size != 0 {
		return nil, errDecrypt
	}
	plain := make([]byte, len(text)-size)
	cipher.NewCBCDecrypter(block, text[:size]).CryptBlocks(plain, text[size:])
	padding := int(plain[len(plain)-1])
	if padding < 1 || padding > size {
		return nil, errDecrypt
	}
	return plain[:len(plain)-padding], nil
}

// oaepOptions returns how a key is encrypted.
func oaepOptions(wrapped *etree.Element) (*rsa.OAEPOptions, error) {
	method, err := child(wrapped, nsEncryption, "EncryptionMethod")
	if err != nil || method == nil {
		return nil, errDecrypt
	}
	name := method.SelectAttrValue("Algorithm", "")
	if name != oaep && name != oaep11 {
		return nil, fmt.Errorf("the key of the assertion is encrypted with %q, which is not accepted", clip(name))
	}
	options := &rsa.OAEPOptions{Hash: crypto.SHA1, MGFHash: crypto.SHA1}
	for _, c := range method.ChildElements() {
		hash, ok := map[string]crypto.Hash{
			dsig.Namespace + "sha1": crypto.SHA1, nsEncryption + "sha256": crypto.SHA256, "http://www.w3.org/2001/04/xmldsig-more#sha384": crypto.SHA384, nsEncryption + "sha512": crypto.SHA512,
			nsEncryption11 + "mgf1sha1": crypto.SHA1, nsEncryption11 + "mgf1sha256": crypto.SHA256, nsEncryption11 + "mgf1sha384": crypto.SHA384, nsEncryption11 + "mgf1sha512": crypto.SHA512,
		}[c.SelectAttrValue("Algorithm", "")]
		switch {
		case ok && is(c, dsig.Namespace, "DigestMethod"):
			options.Hash = hash
		case ok && name == oaep11 && is(c, nsEncryption11, "MGF"):
			options.MGFHash = hash
		default:
			return nil, errors.New("the key of the assertion is encrypted in a way that is not known")
		}
	}
	return options, nil
}

func methodOf(el *etree.Element) string {
	method, err := child(el, nsEncryption, "EncryptionMethod")
	if err != nil || method == nil {
		return ""
	}
	return method.SelectAttrValue("Algorithm", "")
}

// cipherText returns the encrypted bytes of an element; empty if it has none.
func cipherText(el *etree.Element) []byte {
	data, err := child(el, nsEncryption, "CipherData")
	if err != nil || data == nil {
		return nil
	}
	value, err := child(data, nsEncryption, "CipherValue")
	if err != nil || value == nil {
		return nil
	}
	text, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(textOf(value)), ""))
	if err != nil {
		return nil
	}
	return text
}
