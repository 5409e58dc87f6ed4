package persistence
import ("testing";"fmt";"os";"path/filepath";"errors";"reins/protocol")
func TestZZ(t *testing.T){
 for _, frac := range []float64{0.1,0.3,0.5,0.7,0.9,0.98} {
 dir:=t.TempDir()
 s:=mustOpen(t,dir,Options{})
 for i:=range 100 { id:=fmt.Sprint(i); _,e:=s.Admit(admission("ann",id)); if e:=errors.Join(e,s.Finish(ending("ann",id,protocol.StateApplied)));e!=nil{t.Fatal(e)} }
 s.Close()
 ls,_:=filepath.Glob(dir+"/db/*.log")
 for _,l:=range ls { b,_:=os.ReadFile(l); t.Log(l,len(b)); if len(b)>0 { b[int(float64(len(b))*frac)]^=0x55; os.WriteFile(l,b,0600)} }
 s,err:=Open(dir,Options{})
 t.Log(frac, err)
 if err==nil { n:=0; for i:=range 100 { if stateOf(t,s,"ann",fmt.Sprint(i))!="" {n++} }; t.Log(n); s.Close() }
 }
}
